import { type DynamicModule, Module, type Type } from '@nestjs/common';
import { BUS, type LocalBus } from '#libs/iii';
import { CLOCK, FEED, JOURNAL, type LiveFeed, STEP_QUEUE, systemClock, TRANSCRIPT, TurnModule } from '#libs/turn';
import { ApprovalInbox } from '../approval/index.js';
import { ConfigurationBusModule, ConfigurationModule, type LiveConfiguration } from '../configuration/index.js';
import { QueueModule } from '../queue/index.js';
import { SessionsModule } from '../sessions/index.js';
import { TracesModule } from '../traces/index.js';
import { type Given, GivenModule, partsOf } from './given.module.js';
import { PROVIDER_MODULES } from './providers.js';
import { modulesOf, type Sibling } from './siblings.js';
import type { Store } from './store.js';

/** What the embedded runtime is made of, before Nest wires it. */
export interface EmbeddedParts {
  bus: LocalBus;
  feed: LiveFeed;
  store: Store;
  configuration: LiveConfiguration;
  siblings: ReadonlySet<Sibling>;
  /** What the role of the process needs besides. */
  modules: (Type | DynamicModule)[];
}

/** What every module of the runtime may ask for. */
const givenOf = ({ bus, feed, store }: EmbeddedParts): Given[] => [
  [BUS, bus],
  [FEED, feed],
  [CLOCK, systemClock],
  [JOURNAL, store.journal],
  [TRANSCRIPT, store.transcript],
  [STEP_QUEUE, store.queue],
  [ApprovalInbox, store.approvals],
  ...partsOf(store),
];

/** The embedded runtime as a Nest application: the turn loop and the local siblings on one in-process engine. */
@Module({})
export class EmbeddedModule {
  static forRoot(parts: EmbeddedParts): DynamicModule {
    return {
      module: EmbeddedModule,
      imports: [
        GivenModule.of(givenOf(parts)),
        ConfigurationModule.forRoot({ configuration: parts.configuration }),
        ConfigurationBusModule,
        ...parts.modules,
        TurnModule,
        SessionsModule,
        QueueModule,
        TracesModule,
        ...modulesOf(parts.siblings),
        ...PROVIDER_MODULES,
      ],
    };
  }
}
