import { type DynamicModule, Module, type ValueProvider } from '@nestjs/common';
import { SPANS } from '#libs/turn';
import { ProcessRegistry } from '../processes/registry.js';
import { JobQueue } from '../queue/index.js';
import { SessionRepository } from '../sessions/repository.js';
import { SqliteTranscript } from '../sessions/transcript.js';
import { DATABASE, SqliteWriter } from '../sqlite/index.js';
import { SpanRecorder } from '../traces/recorder.js';
import { SpanTable } from '../traces/span-table.js';
import { StoreCommits } from '../turns/commits.js';
import { EventDelivery } from '../turns/delivery.js';
import type { Store } from './store.js';

/** A token and what it stands for. */
export type Given = readonly [token: ValueProvider['provide'], value: unknown];

/** The parts of a store that modules ask for. */
export const partsOf = (store: Store): Given[] => [
  [DATABASE, store.db],
  [SqliteWriter, store.writer],
  [SessionRepository, store.repository],
  [SqliteTranscript, store.transcript],
  [StoreCommits, store.commits],
  [ProcessRegistry, store.processes],
  [EventDelivery, store.delivery],
  [SpanTable, store.spans],
  [SpanRecorder, store.recorder],
  [SPANS, store.recorder],
  [JobQueue, store.jobs],
];

/** Gives what was made outside of Nest to every module. */
@Module({})
export class GivenModule {
  static of(given: readonly Given[]): DynamicModule {
    const providers = given.map(([provide, useValue]) => ({ provide, useValue }));
    return { module: GivenModule, global: true, providers, exports: providers.map(({ provide }) => provide) };
  }
}
