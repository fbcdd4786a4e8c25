import type { ChannelTable } from './channels.js';
import type { FunctionTable } from './functions.js';
import type { TriggerTable } from './triggers.js';
import type { WorkerTable } from './workers.js';

/** What a local engine knows: who is there and what they registered. */
export interface EngineTables {
  readonly functions: FunctionTable;
  readonly triggers: TriggerTable;
  readonly workers: WorkerTable;
  readonly channels: ChannelTable;
}
