import { Module } from '@nestjs/common';
import { HookRegistry, HooksModule } from '#libs/hooks';
import { BUS, type Bus } from '#libs/iii';
import { TurnEvents } from './events/turn-events.js';
import { HarnessFunctions } from './functions/harness.functions.js';
import { TurnExecutor } from './loop/executor.js';
import type { LoopPorts } from './loop/ports.js';
import { compileGlobs } from './policy/glob.js';
import {
  CLOCK,
  type Clock,
  FEED,
  type Feed,
  JOURNAL,
  type Journal,
  SETTINGS,
  type SettingsSource,
  SPANS,
  type SpanSink,
  TRANSCRIPT,
  type Transcript,
} from './ports/index.js';
import { LOOP_PORTS } from './tokens.js';

/** The turn loop: its functions, its executor and its events. A runtime provides the ports, globally. */
@Module({
  imports: [HooksModule.forRoot(compileGlobs)],
  controllers: [HarnessFunctions],
  providers: [
    TurnEvents,
    {
      provide: LOOP_PORTS,
      inject: [BUS, JOURNAL, TRANSCRIPT, SETTINGS, FEED, CLOCK, HookRegistry, SPANS],
      useFactory: (
        bus: Bus,
        journal: Journal,
        transcript: Transcript,
        settings: SettingsSource,
        feed: Feed,
        clock: Clock,
        hooks: HookRegistry,
        spans: SpanSink,
      ): LoopPorts => ({
        bus,
        journal,
        transcript,
        settings,
        feed,
        clock,
        hooks,
        spans,
      }),
    },
    { provide: TurnExecutor, inject: [LOOP_PORTS], useFactory: (ports: LoopPorts) => new TurnExecutor(ports) },
  ],
  exports: [TurnEvents, TurnExecutor, LOOP_PORTS],
})
export class TurnModule {}
