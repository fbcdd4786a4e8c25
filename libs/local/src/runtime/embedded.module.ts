import { type DynamicModule, Module, type Type } from '@nestjs/common';
import { BUS, type LocalBus } from '#libs/iii';
import { CLOCK, FEED, JOURNAL, type LiveFeed, STEP_QUEUE, systemClock, TRANSCRIPT, TurnModule } from '#libs/turn';
import { ApprovalInbox } from '../approval/index.js';
import { ConfigurationBusModule, ConfigurationModule, type LiveConfiguration } from '../configuration/index.js';
import { ProcessRegistry } from '../processes/registry.js';
import { QueueModule } from '../queue/index.js';
import { SessionsModule } from '../sessions/index.js';
import { SessionRepository } from '../sessions/repository.js';
import { SqliteTranscript } from '../sessions/transcript.js';
import { DATABASE, SqliteWriter } from '../sqlite/index.js';
import { StoreCommits } from '../turns/commits.js';
import { EventDelivery } from '../turns/delivery.js';
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

/** Gives the parts of the runtime to every module. */
@Module({})
class PartsModule {
  static forRoot({ bus, feed, store }: EmbeddedParts): DynamicModule {
    const values: [unknown, unknown][] = [
      [BUS, bus],
      [FEED, feed],
      [CLOCK, systemClock],
      [JOURNAL, store.journal],
      [TRANSCRIPT, store.transcript],
      [STEP_QUEUE, store.queue],
      [DATABASE, store.db],
      [SqliteWriter, store.writer],
      [SessionRepository, store.repository],
      [SqliteTranscript, store.transcript],
      [StoreCommits, store.commits],
      [ProcessRegistry, store.processes],
      [EventDelivery, store.delivery],
      [ApprovalInbox, store.approvals],
    ];
    const providers = values.map(([provide, useValue]) => ({ provide: provide as symbol, useValue }));
    return { module: PartsModule, global: true, providers, exports: providers.map((p) => p.provide) };
  }
}

/** The embedded runtime as a Nest application: the turn loop and the local siblings on one in-process engine. */
@Module({})
export class EmbeddedModule {
  static forRoot(parts: EmbeddedParts): DynamicModule {
    return {
      module: EmbeddedModule,
      imports: [
        PartsModule.forRoot(parts),
        ConfigurationModule.forRoot({ configuration: parts.configuration }),
        ConfigurationBusModule,
        ...parts.modules,
        TurnModule,
        SessionsModule,
        QueueModule,
        ...modulesOf(parts.siblings),
        ...PROVIDER_MODULES,
      ],
    };
  }
}
