import type { Type } from '@nestjs/common';
import { HarnessError } from '#libs/contracts';
import { ApprovalModule } from '../approval/index.js';
import { CoderModule } from '../coder/index.js';
import { ContextModule } from '../context/index.js';
import { RouterModule } from '../router/index.js';
import { ShellModule } from '../shell/index.js';
import { StateModule } from '../state/index.js';
import { WebModule } from '../web/index.js';

/** The siblings that a worker in another process can take the place of. */
const MODULES = {
  approval: ApprovalModule,
  coder: CoderModule,
  context: ContextModule,
  router: RouterModule,
  shell: ShellModule,
  state: StateModule,
  web: WebModule,
} satisfies { [name: string]: Type };

export type Sibling = keyof typeof MODULES;
const ALL = Object.keys(MODULES) as Sibling[];

/** Which of our siblings run: all without a list. See `readSiblings`. */
export const siblingsOf = (list: string | undefined): ReadonlySet<Sibling> => readSiblings(list?.trim() ? list : 'all', ALL);

/**
 * Reads a list of siblings out of `all`: `all`, those of the list (`shell,coder`), or all but some (`-shell,-web`).
 * Throws `harness/invalid_setting`.
 */
export function readSiblings<Name extends string>(list: string, all: readonly Name[]): ReadonlySet<Name> {
  const names = list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (names.length === 1 && names[0] === 'all') return new Set(all);
  const without = names.flatMap((name) => (name.startsWith('-') ? [name.slice(1)] : []));
  if (without.length > 0 && without.length < names.length) throw invalid(`has names with and without "-": ${names.join(',')}`);
  const named = without.length > 0 ? without : names;
  const unknown = named.find((name) => !all.includes(name as Name));
  if (unknown !== undefined) throw invalid(`names ${JSON.stringify(unknown)}, which is none of ${all.join(', ')}`);
  return new Set(all.filter((name) => named.includes(name) === (without.length === 0)));
}

const invalid = (what: string): HarnessError => new HarnessError('harness/invalid_setting', `HARNESS_SIBLINGS ${what}`);

/** The modules of siblings. */
export const modulesOf = (siblings: ReadonlySet<Sibling>): Type[] => ALL.flatMap((name) => (siblings.has(name) ? [MODULES[name]] : []));
