import { join } from 'node:path';
import { type ConfineValues, type OpenFolder, PathError, type Scope } from '../../confine/index.js';
import { CoderError, type EntryError, entryError } from '../errors.js';
import type { KeyedLock } from '../lock.js';
import { readWhole } from '../read-file.js';
import { revisionOf } from '../text.js';
import { assertRevision } from './update-file.js';
import { writeAtomic } from './write.js';

export interface CreateFileSpec {
  path: string;
  content: string;
  overwrite?: boolean;
  parents?: boolean;
  mode?: string;
  expected_revision?: string | null;
}
export interface CreateFileResult {
  path: string;
  success: boolean;
  bytes_written: number;
  revision?: string;
  error?: EntryError;
}

const DEFAULT_MODE = 0o644;

/** Writes each file whole. A failure of one leaves the others as they are. */
export async function createFiles(
  scope: Scope,
  values: ConfineValues,
  files: readonly CreateFileSpec[],
  lock: KeyedLock,
  signal: AbortSignal,
): Promise<{ results: CreateFileResult[] }> {
  if (files.length === 0) throw new CoderError('C210', 'files is empty; it should hold at least one {path, content}');
  const results: CreateFileResult[] = [];
  for (const spec of files) {
    signal.throwIfAborted();
    try {
      results.push(await createOne(scope, values, spec, lock, signal));
    } catch (error) {
      results.push({ path: spec.path, success: false, bytes_written: 0, error: entryError(error, spec.path) });
    }
  }
  return { results };
}

async function createOne(
  scope: Scope,
  values: ConfineValues,
  spec: CreateFileSpec,
  lock: KeyedLock,
  signal: AbortSignal,
): Promise<CreateFileResult> {
  const bytes = Buffer.from(spec.content, 'utf8');
  if (bytes.length > values.max_file_bytes)
    throw new CoderError('C213', `content has ${bytes.length} bytes, more than ${values.max_file_bytes}`);
  const { folder, name } = await scope.openParent(spec.path, spec.parents ?? true);
  const path = join(folder.path, name);
  try {
    return await lock.run(path, async () => {
      const expected = spec.expected_revision ?? null;
      const existing = await look(scope, values, folder, name, expected !== null, signal);
      if (expected !== null) {
        if (existing === null) throw new CoderError('C221', `${spec.path} does not exist, so it has no revision ${expected}`);
        assertRevision(spec.path, expected, existing.revision ?? '');
      }
      const replace = spec.overwrite === true || expected !== null;
      const mode = spec.mode === undefined ? (existing?.mode ?? DEFAULT_MODE) : Number.parseInt(spec.mode, 8);
      await writeAtomic(folder, name, bytes, { mode, exclusive: !replace, ...(existing === null ? {} : { owner: existing.owner }) });
      return { path, success: true, bytes_written: bytes.length, revision: await revisionOf(bytes) };
    });
  } finally {
    await folder.close();
  }
}

/** What is there now: null when nothing. @throws when it is something other than a regular file. */
async function look(
  scope: Scope,
  values: ConfineValues,
  folder: OpenFolder,
  name: string,
  withRevision: boolean,
  signal: AbortSignal,
): Promise<{ mode: number; owner: { uid: number; gid: number }; revision: string | null } | null> {
  try {
    const file = await scope.openIn(folder, name);
    try {
      return {
        mode: Number(file.stat.mode) & 0o777,
        owner: { uid: Number(file.stat.uid), gid: Number(file.stat.gid) },
        revision: withRevision ? await revisionOf(await readWhole(file, values.max_file_bytes, signal)) : null,
      };
    } finally {
      await file.handle.close();
    }
  } catch (error) {
    if (error instanceof PathError && error.reason === 'missing') return null;
    throw error;
  }
}
