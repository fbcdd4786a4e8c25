import { type DynamicModule, Module } from '@nestjs/common';
import { BUS, type SdkBus } from '#libs/iii';
import { CLOCK, FEED, JOURNAL, type LiveFeed, STEP_QUEUE, systemClock, TRANSCRIPT, TurnModule } from '#libs/turn';
import { ApprovalInbox } from '../approval/index.js';
import { ConfigurationModule, type LiveConfiguration } from '../configuration/index.js';
import { PendingSweep } from '../cron/index.js';
import { GivenModule, partsOf } from '../runtime/given.module.js';
import type { Store } from '../runtime/store.js';
import { TracesModule } from '../traces/index.js';
import { type EngineSibling, engineModulesOf } from './siblings.js';
import type { Standing } from './standing.js';
import type { TurnStore } from './turn-store.js';

/** What the worker of an engine is made of, before Nest wires it. */
export interface EngineParts {
  bus: SdkBus;
  feed: LiveFeed;
  store: Store;
  turns: TurnStore;
  standing: Standing;
  configuration: LiveConfiguration;
  ours: ReadonlySet<EngineSibling>;
}

/** The worker of an iii engine as a Nest application: the turn loop, and the siblings that it stands in for. */
@Module({})
export class EngineModule {
  static forRoot({ bus, feed, store, turns, configuration, ours }: EngineParts): DynamicModule {
    return {
      module: EngineModule,
      imports: [
        GivenModule.of([
          [BUS, bus],
          [FEED, feed],
          [CLOCK, systemClock],
          [JOURNAL, turns.journal],
          [TRANSCRIPT, turns.transcript],
          [STEP_QUEUE, turns.queue],
          [ApprovalInbox, store.approvals],
          ...partsOf(store),
        ]),
        ConfigurationModule.forRoot({ configuration }),
        TurnModule,
        TracesModule,
        ...engineModulesOf(ours),
      ],
      providers: [PendingSweep],
    };
  }
}
