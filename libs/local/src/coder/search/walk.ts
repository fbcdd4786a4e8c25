import { join, relative, sep } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { errnoOf, type OpenFolder, PathError, type Scope } from '../../confine/index.js';
import { isDefaultExclude } from '../excludes.js';
import { type EntryKind, entriesOf } from '../folder.js';
import { IgnoreFile } from './gitignore.js';

/** Something that a walk came by. `folder` is open only until the walk goes on. */
export interface WalkEntry {
  readonly folder: OpenFolder;
  readonly name: string;
  readonly kind: EntryKind;
  /** Relative to the folder where the walk began, with `/`. */
  readonly path: string;
}

export interface WalkOptions {
  useDefaultExcludes: boolean;
  respectGitignore: boolean;
  /** True for a path that is left out with all that is below it. */
  excluded: (path: string) => boolean;
  signal: AbortSignal;
  /** Told of a folder whose content is passed over because it lies too deep. */
  tooDeep: (path: string) => void;
}

/** A `.gitignore` file and how a path of the walk looks from its folder: `lead` is put before it, `cut` characters go. */
interface IgnoreLevel {
  readonly file: IgnoreFile;
  readonly lead: string;
  readonly cut: number;
}

/** A walk holds one folder open for each level. */
export const MAX_DEPTH = 128;
const MAX_IGNORE_BYTES = 65_536;
/** How long a walk may go on, in ms, before others get their turn: ignored entries are passed over without waiting for the disk. */
const TURN_MS = 10;

/** Walks everything below `start` by name, each folder before its content. Symbolic links are named and not followed. */
export async function* walk(scope: Scope, start: OpenFolder, options: WalkOptions): AsyncGenerator<WalkEntry> {
  yield* below(scope, start, '', options.respectGitignore ? await ignoresAbove(scope, start) : [], options, MAX_DEPTH);
}

async function* below(
  scope: Scope,
  folder: OpenFolder,
  prefix: string,
  above: readonly IgnoreLevel[],
  options: WalkOptions,
  levelsLeft: number,
): AsyncGenerator<WalkEntry> {
  const { entries } = await entriesOf(folder, options.signal);
  const own =
    options.respectGitignore && entries.some((e) => e.name === '.gitignore' && e.kind === 'file') ? await readIgnore(scope, folder) : null;
  const levels = own === null ? above : [...above, { file: own, lead: '', cut: prefix.length }];
  let turnEnds = performance.now() + TURN_MS;
  for (const { name, kind } of entries) {
    if (performance.now() > turnEnds) {
      await nextTurn();
      turnEnds = performance.now() + TURN_MS;
    }
    options.signal.throwIfAborted();
    const path = prefix + name;
    if (kind === 'dir' && options.useDefaultExcludes && isDefaultExclude(name)) continue;
    if (scope.isHidden(join(folder.path, name)) || options.excluded(path) || isIgnored(levels, path, kind === 'dir')) continue;
    yield { folder, name, kind, path };
    if (kind !== 'dir') continue;
    if (levelsLeft === 0) {
      options.tooDeep(path);
      continue;
    }
    const child = await openOrSkip(scope, folder, name);
    if (child === null) continue;
    try {
      yield* below(scope, child, `${path}/`, levels, options, levelsLeft - 1);
    } finally {
      await child.close();
    }
  }
}

/** The `.gitignore` files of the folders between the root and the start of a walk, which count for it too. */
async function ignoresAbove(scope: Scope, start: OpenFolder): Promise<IgnoreLevel[]> {
  const parts = relative(scope.root, start.path)
    .split(sep)
    .filter((part) => part !== '');
  const levels: IgnoreLevel[] = [];
  for (let depth = 0; depth < parts.length; depth++) {
    const folder = await scope.openFolder(join(scope.root, ...parts.slice(0, depth)));
    try {
      const file = await readIgnore(scope, folder);
      if (file !== null) levels.push({ file, lead: `${parts.slice(depth).join('/')}/`, cut: 0 });
    } finally {
      await folder.close();
    }
  }
  return levels;
}

function isIgnored(levels: readonly IgnoreLevel[], path: string, isFolder: boolean): boolean {
  for (let i = levels.length - 1; i >= 0; i--) {
    const level = levels[i];
    const decided = level?.file.decide(level.lead + path.slice(level.cut), isFolder) ?? null;
    if (decided !== null) return decided;
  }
  return false;
}

/** A folder that went away or that may not be read is passed over, as a search of many folders should. */
async function openOrSkip(scope: Scope, folder: OpenFolder, name: string): Promise<OpenFolder | null> {
  try {
    return await scope.openFolderIn(folder, name);
  } catch (error) {
    if (error instanceof PathError || errnoOf(error) !== undefined) return null;
    throw error;
  }
}

async function readIgnore(scope: Scope, folder: OpenFolder): Promise<IgnoreFile | null> {
  try {
    const file = await scope.openIn(folder, '.gitignore');
    try {
      const { bytesRead, buffer } = await file.handle.read(
        Buffer.alloc(Math.min(Number(file.stat.size), MAX_IGNORE_BYTES)),
        0,
        undefined,
        0,
      );
      return new IgnoreFile(buffer.toString('utf8', 0, bytesRead));
    } finally {
      await file.handle.close();
    }
  } catch (error) {
    if (error instanceof PathError || errnoOf(error) !== undefined) return null;
    throw error;
  }
}
