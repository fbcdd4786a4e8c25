import type { DynamicModule, Type } from '@nestjs/common';
import type { SdkBus } from '#libs/iii';
import { QueueModule } from '../queue/index.js';
import { PROVIDER_MODULES } from '../runtime/providers.js';
import { modulesOf, readSiblings, type Sibling } from '../runtime/siblings.js';
import { SessionsModule } from '../sessions/index.js';
import { registered } from './directory.js';
import type { Log } from './reach.js';

/** A sibling as the engine knows it: how one that runs elsewhere is told, and what a turn cannot do without. */
interface Place {
  /** A function that every worker of this kind has. */
  mark: string;
  /** Functions that must be there before turns run; empty where a turn does without. */
  needed: readonly string[];
}

/** What this worker can stand in for on an engine. */
export const SIBLINGS = {
  approval: { mark: 'approval::resolve', needed: [] },
  coder: { mark: 'coder::read-file', needed: [] },
  context: { mark: 'context::assemble', needed: [] },
  providers: { mark: 'provider::demo::stream', needed: [] },
  queue: { mark: 'engine::queue::enqueue', needed: [] },
  router: { mark: 'router::chat', needed: ['router::chat'] },
  sessions: {
    mark: 'session::append',
    needed: ['session::ensure', 'session::append', 'session::update-message', 'session::messages', 'session::set-status'],
  },
  shell: { mark: 'shell::exec', needed: [] },
  state: { mark: 'state::set', needed: [] },
  web: { mark: 'web::fetch', needed: [] },
} satisfies { [name: string]: Place };

export type EngineSibling = keyof typeof SIBLINGS;
const NAMES = Object.keys(SIBLINGS) as EngineSibling[];

/** The siblings that `HARNESS_SIBLINGS` names: none without it, `all`, a list, or all but some. Throws `harness/invalid_setting`. */
export const wantedSiblings = (list: string | undefined): ReadonlySet<EngineSibling> =>
  list === undefined || list.trim() === '' ? new Set() : readSiblings(list, NAMES);

/** The siblings that this worker stands in for: those that are wanted and whose place nobody has on the engine. Throws as `Bus.trigger`. */
export async function standIns(bus: SdkBus, wanted: ReadonlySet<EngineSibling>, log: Log): Promise<ReadonlySet<EngineSibling>> {
  const found = await registered(
    bus,
    [...wanted].map((name) => SIBLINGS[name].mark),
  );
  const ours = new Set<EngineSibling>();
  for (const name of wanted) {
    const { mark } = SIBLINGS[name];
    const other = found.get(mark)?.worker_name;
    if (other === undefined || other === bus.name) ours.add(name);
    else log('info', `${name} is left to the worker ${other}, which has ${mark}`, {});
  }
  return ours;
}

/** The modules of stand-ins. */
export const engineModulesOf = (ours: ReadonlySet<EngineSibling>): (Type | DynamicModule)[] => [
  ...(ours.has('sessions') ? [SessionsModule] : []),
  ...(ours.has('queue') ? [QueueModule] : []),
  ...(ours.has('providers') ? PROVIDER_MODULES : []),
  ...modulesOf(new Set(ours as ReadonlySet<Sibling>)),
];
