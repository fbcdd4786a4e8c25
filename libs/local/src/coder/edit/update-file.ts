import { isUtf8 } from 'node:buffer';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ConfineValues, Scope } from '../../confine/index.js';
import { CoderError, type EntryError, entryError } from '../errors.js';
import type { KeyedLock } from '../lock.js';
import { readWhole } from '../read-file.js';
import { revisionOf } from '../text.js';
import { type Echo, echoesOf } from './echo.js';
import { applyLineOps, type LineOp, type ReplaceOp, type UpdateOp } from './line-ops.js';
import { applyReplaceOps } from './replace.js';
import { writeAtomic } from './write.js';

export interface UpdateFileSpec {
  path: string;
  ops: UpdateOp[];
  expected_revision?: string | null;
}
export interface UpdateFileResult {
  path: string;
  success: boolean;
  /** Ops that were applied: all of them or none. */
  applied: number;
  new_line_count: number;
  echoes: Echo[];
  echoes_truncated: boolean;
  revision?: string;
  error?: EntryError;
}

const MAX_SITES = 5;
const BOM = '\ufeff';

/** Applies the ops of each file, each file all or nothing. */
export async function updateFiles(
  scope: Scope,
  values: ConfineValues,
  files: readonly UpdateFileSpec[],
  lock: KeyedLock,
  signal: AbortSignal,
): Promise<{ results: UpdateFileResult[] }> {
  if (files.length === 0) throw new CoderError('C210', 'files is empty; it should hold at least one {path, ops}');
  const results: UpdateFileResult[] = [];
  for (const spec of files) {
    signal.throwIfAborted();
    try {
      const path = await scope.resolve(spec.path);
      results.push(await lock.run(path, () => updateOne(scope, values, path, spec, signal)));
    } catch (error) {
      results.push({
        path: spec.path,
        success: false,
        applied: 0,
        new_line_count: 0,
        echoes: [],
        echoes_truncated: false,
        error: entryError(error, spec.path),
      });
    }
  }
  return { results };
}

async function updateOne(
  scope: Scope,
  values: ConfineValues,
  path: string,
  spec: UpdateFileSpec,
  signal: AbortSignal,
): Promise<UpdateFileResult> {
  if (spec.ops.length === 0) throw new CoderError('C210', 'ops is empty; it should hold at least one op');
  const { folder, name } = await scope.openParent(path, false);
  try {
    const file = await scope.openIn(folder, name);
    let before: Buffer;
    try {
      before = await readWhole(file, values.max_file_bytes, signal);
    } finally {
      await file.handle.close();
    }
    if (spec.expected_revision !== undefined && spec.expected_revision !== null)
      assertRevision(spec.path, spec.expected_revision, await revisionOf(before));
    const edited = await edit(before, spec, values.max_file_bytes, signal);
    await nextTurn();
    const after = Buffer.from(edited.written, 'utf8');
    if (after.length > values.max_file_bytes)
      throw new CoderError('C213', `${spec.path} would have ${after.length} bytes, more than ${values.max_file_bytes}`);
    await assertUnchanged(scope, folder, name, file.stat);
    signal.throwIfAborted();
    const owner = { uid: Number(file.stat.uid), gid: Number(file.stat.gid) };
    await writeAtomic(folder, name, after, { mode: Number(file.stat.mode) & 0o777, owner, exclusive: false });
    return {
      path,
      success: true,
      applied: spec.ops.length,
      new_line_count: edited.lineCount,
      ...edited.echoes,
      revision: await revisionOf(after),
    };
  } finally {
    await folder.close();
  }
}

/** @throws CoderError C221 when the file is not what the caller last saw. */
export function assertRevision(path: string, expected: string, current: string): void {
  if (expected !== current)
    throw new CoderError('C221', `${path} has revision ${current}, not ${expected}; read it again and redo the change`);
}

/** Looks once more before the write, so that what somebody else wrote meanwhile is not lost. */
async function assertUnchanged(
  scope: Scope,
  folder: Parameters<Scope['openIn']>[0],
  name: string,
  before: { ino: bigint; size: bigint; mtimeNs: bigint },
): Promise<void> {
  const now = await scope.openIn(folder, name);
  await now.handle.close();
  if (now.stat.ino !== before.ino || now.stat.size !== before.size || now.stat.mtimeNs !== before.mtimeNs) {
    throw new CoderError('C221', `${name} was changed by somebody else during the edit; read it again and redo the change`);
  }
}

/** Line ops first, then replace ops; both see lines that end in \n, and files that end theirs in \r\n keep that. */
async function edit(
  before: Buffer,
  spec: UpdateFileSpec,
  limit: number,
  signal: AbortSignal,
): Promise<{ written: string; lineCount: number; echoes: { echoes: Echo[]; echoes_truncated: boolean } }> {
  if (!isUtf8(before) || before.includes(0)) throw new CoderError('C210', `${spec.path} is not UTF-8 text; only text files can be edited`);
  const whole = before.toString('utf8');
  const bom = whole.startsWith(BOM) ? BOM : '';
  const crlf = /\r\n/.test(whole) && !/(^|[^\r])\n/.test(whole);
  const plain = (text: string): string => (crlf ? text.replaceAll('\r\n', '\n') : text);
  const lineOps: { index: number; op: LineOp }[] = [];
  const replaceOps: { index: number; op: ReplaceOp }[] = [];
  spec.ops.forEach((op, index) => {
    if (op.op === 'replace') replaceOps.push({ index, op });
    else lineOps.push({ index, op: 'content' in op ? { ...op, content: plain(op.content) } : op });
  });
  await nextTurn();
  const lined = applyLineOps(plain(whole.slice(bom.length)), lineOps);
  await nextTurn();
  const replaced = await applyReplaceOps({ ...lined, ops: replaceOps, maxLength: limit, maxSites: MAX_SITES }, signal);
  const totals = new Map(replaceOps.map(({ index }, i) => [index, replaced.totals[i] ?? 0]));
  const { lineCount, ...echoes } = echoesOf(replaced.text, replaced.regions, totals);
  await nextTurn();
  const written = bom + (crlf ? replaced.text.replaceAll('\r\n', '\n').replaceAll('\n', '\r\n') : replaced.text);
  return { written, lineCount, echoes };
}
