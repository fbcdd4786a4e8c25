import { Module } from '@nestjs/common';
import { BUS, type Bus } from '#libs/iii';
import { TurnEvents } from './events/turn-events.js';
import { HarnessFunctions } from './functions/harness.functions.js';
import { TurnExecutor } from './loop/executor.js';
import type { LoopPorts } from './loop/ports.js';
import { CLOCK, FEED, JOURNAL, SETTINGS, TRANSCRIPT, type Clock, type Feed, type Journal, type SettingsSource, type Transcript } from './ports/index.js';
import { LOOP_PORTS } from './tokens.js';

/** The turn loop: its functions, its executor and its events. A runtime provides the ports, globally. */
@Module({
  controllers: [HarnessFunctions],
  providers: [
    TurnEvents,
    {
      provide: LOOP_PORTS,
      inject: [BUS, JOURNAL, TRANSCRIPT, SETTINGS, FEED, CLOCK],
      useFactory: (bus: Bus, journal: Journal, transcript: Transcript, settings: SettingsSource, feed: Feed, clock: Clock): LoopPorts => ({ bus, journal, transcript, settings, feed, clock }),
    },
    { provide: TurnExecutor, inject: [LOOP_PORTS], useFactory: (ports: LoopPorts) => new TurnExecutor(ports) },
  ],
  exports: [TurnEvents, TurnExecutor, LOOP_PORTS],
})
export class TurnModule {}
