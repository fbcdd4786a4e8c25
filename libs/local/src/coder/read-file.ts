import { isUtf8 } from 'node:buffer';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type ConfineValues, type OpenFile, type Scope } from '../confine/index.js';
import { CoderError, coderError, type EntryError, entryError } from './errors.js';
import { cutBytes, lineStarts, revisionOf } from './text.js';

/** Which part of which file to read. Lines are 1-based and inclusive. */
export interface ReadTarget {
  path: string;
  line_from?: number | null;
  line_to?: number | null;
  numbered?: boolean;
  stat?: boolean;
}
export interface ReadFileRequest extends Partial<ReadTarget> {
  paths?: (string | ReadTarget)[] | null;
  max_output_bytes?: number | null;
}

/** One file as read. `mtime` is in seconds, `mode` the permission bits. */
export interface ReadResult {
  path: string;
  content: string | null;
  size: number;
  mode: number;
  mtime: number;
  /** Whether the returned bytes are valid UTF-8; invalid ones come as U+FFFD. Null when nothing was looked at. */
  is_utf8: boolean | null;
  lines_returned: number;
  more_lines: boolean;
  /** Null when the file is too large to be counted. */
  total_lines: number | null;
  /** For `expected_revision` of a later write; null when the file is too large to be edited. */
  revision: string | null;
}
export type ReadEntry = ({ success: true } & ReadResult) | { success: false; path: string; error: EntryError };

const CHUNK = 262_144;
/** How long a window may take to be reached in a file that is too large to be read whole. */
const SCAN_MS = 20_000;

/** Reads one file or a batch of them; see the function's description for the rules. */
export async function readFiles(
  scope: Scope,
  values: ConfineValues,
  request: ReadFileRequest,
  signal: AbortSignal,
): Promise<ReadResult | { results: ReadEntry[] }> {
  const { path, paths } = request;
  if ((path ?? null) === null ? (paths ?? null) === null : (paths ?? null) !== null) {
    throw new CoderError('C210', 'give either path (one file) or paths (a batch), and not both');
  }
  if (paths === null || paths === undefined) {
    const target = { ...request, path: path ?? '' };
    const budget = Math.min(request.max_output_bytes ?? values.max_output_bytes, values.max_file_bytes);
    return readOne(scope, values, target, budget, signal).catch((error: unknown) => Promise.reject(coderError(error, target.path)));
  }
  const results: ReadEntry[] = [];
  let budget = values.max_batch_bytes;
  for (const entry of paths) {
    signal.throwIfAborted();
    const target = typeof entry === 'string' ? { path: entry } : entry;
    try {
      const read = await readOne(scope, values, target, budget, signal);
      budget -= Buffer.byteLength(read.content ?? '');
      results.push({ success: true, ...read });
    } catch (error) {
      results.push({ success: false, path: target.path, error: entryError(error, target.path) });
    }
  }
  return { results };
}

async function readOne(scope: Scope, values: ConfineValues, target: ReadTarget, budget: number, signal: AbortSignal): Promise<ReadResult> {
  const from = target.line_from ?? null;
  const to = target.line_to ?? null;
  const windowed = from !== null || to !== null;
  if (target.stat === true && (windowed || target.numbered === true)) {
    throw new CoderError('C210', 'stat returns no content; leave out line_from, line_to and numbered');
  }
  if (to !== null && to < (from ?? 1)) throw new CoderError('C210', `line_to (${to}) must be at least line_from (${from ?? 1})`);
  const file = await scope.openFile(target.path);
  try {
    const about = describe(file);
    if (about.size > values.max_file_bytes) {
      if (target.stat === true) return about;
      if (!windowed) throw overBudget(target.path, `has ${about.size} bytes, more than the ${values.max_file_bytes} that are read whole`);
      return { ...about, ...(await readFar(file, from ?? 1, to ?? Infinity, target.numbered === true, budget, signal)) };
    }
    const bytes = await readWhole(file, values.max_file_bytes, signal);
    const starts = await lineStarts(bytes);
    const counted = { ...about, size: bytes.length, total_lines: starts.length, revision: await revisionOf(bytes) };
    if (target.stat === true) return { ...counted, is_utf8: isUtf8(bytes) };
    const first = from ?? 1;
    const last = Math.min(to ?? starts.length, starts.length);
    const asked = first > starts.length ? bytes.subarray(0, 0) : bytes.subarray(starts[first - 1] ?? 0, starts[last] ?? bytes.length);
    const window = fitBudget(asked, first, target.numbered === true, budget);
    if (!windowed && window.cut) {
      throw overBudget(
        target.path,
        `has ${bytes.length} bytes in ${starts.length} lines, more than the ${budget} that this call may return`,
      );
    }
    return {
      ...counted,
      content: window.content,
      is_utf8: window.is_utf8,
      lines_returned: window.lines,
      more_lines: window.cut || last < starts.length,
    };
  } finally {
    await file.handle.close();
  }
}

const describe = (file: OpenFile): ReadResult => ({
  path: file.path,
  content: null,
  size: Number(file.stat.size),
  mode: Number(file.stat.mode) & 0o777,
  mtime: Number(file.stat.mtimeMs / 1_000n),
  is_utf8: null,
  lines_returned: 0,
  more_lines: false,
  total_lines: null,
  revision: null,
});

const overBudget = (path: string, what: string): CoderError =>
  new CoderError('C213', `${path} ${what}; read a part with line_from and line_to, or ask for its size with stat: true`);

/** All bytes of an open file. @throws CoderError C213 when there turn out to be more than `limit`. */
export async function readWhole(file: OpenFile, limit: number, signal: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead, buffer } = await file.handle.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK, size);
    if (bytesRead === 0) return Buffer.concat(chunks);
    chunks.push(buffer.subarray(0, bytesRead));
    size += bytesRead;
    if (size > limit) throw new CoderError('C213', `${file.path} has more than ${limit} bytes`);
  }
}

/** What of `asked` fits into `budget` bytes: whole lines, or a part of the first line when not even that fits. */
function fitBudget(
  asked: Buffer,
  first: number,
  numbered: boolean,
  budget: number,
): { content: string; lines: number; cut: boolean; is_utf8: boolean } {
  if (!numbered && asked.length <= budget) {
    return { content: asked.toString('utf8'), lines: countLines(asked), cut: false, is_utf8: isUtf8(asked) };
  }
  const parts: string[] = [];
  let left = budget;
  let at = 0;
  let lines = 0;
  while (at < asked.length) {
    const newline = asked.indexOf(0x0a, at);
    const end = newline < 0 ? asked.length : newline + 1;
    const prefix = numbered ? `${first + lines}→` : '';
    const size = Buffer.byteLength(prefix) + end - at;
    if (size > left) break;
    parts.push(prefix, asked.toString('utf8', at, end));
    left -= size;
    at = end;
    lines++;
  }
  if (lines === 0 && asked.length > 0) {
    const prefix = numbered ? `${first}→` : '';
    const part = cutBytes(asked, Math.max(0, budget - Buffer.byteLength(prefix)));
    return { content: prefix + part.toString('utf8'), lines: 1, cut: true, is_utf8: isUtf8(part) };
  }
  return { content: parts.join(''), lines, cut: at < asked.length, is_utf8: isUtf8(asked.subarray(0, at)) };
}

function countLines(bytes: Buffer): number {
  let lines = 0;
  for (let at = 0; at < bytes.length; lines++) {
    const end = bytes.indexOf(0x0a, at);
    at = end < 0 ? bytes.length : end + 1;
  }
  return lines;
}

/** Reads a window of a file that is too large for memory: streams up to its first line, then keeps at most `budget` bytes. */
async function readFar(
  file: OpenFile,
  first: number,
  last: number,
  numbered: boolean,
  budget: number,
  signal: AbortSignal,
): Promise<Pick<ReadResult, 'content' | 'is_utf8' | 'lines_returned' | 'more_lines' | 'total_lines'>> {
  const deadline = Date.now() + SCAN_MS;
  const kept: Buffer[] = [];
  let keptBytes = 0;
  let line = 1;
  let position = 0;
  let consumed = 0;
  let ended = false;
  let lastByte = 0x0a;
  while (line <= last && keptBytes <= budget && !ended) {
    signal.throwIfAborted();
    if (Date.now() > deadline) throw new CoderError('C213', `line ${first} of ${file.path} was not reached in ${SCAN_MS} ms`);
    const { bytesRead, buffer } = await file.handle.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK, position);
    position += bytesRead;
    ended = bytesRead === 0;
    if (!ended) lastByte = buffer[bytesRead - 1] ?? 0;
    let at = 0;
    const chunk = buffer.subarray(0, bytesRead);
    while (at < chunk.length && line <= last && keptBytes <= budget) {
      const newline = chunk.indexOf(0x0a, at);
      const end = newline < 0 ? chunk.length : newline + 1;
      if (line >= first) {
        kept.push(chunk.subarray(at, end));
        keptBytes += end - at;
      }
      if (newline >= 0) line++;
      consumed += end - at;
      at = end;
    }
    await nextTurn();
  }
  const window = fitBudget(Buffer.concat(kept), first, numbered, budget);
  const total = ended ? line - (lastByte === 0x0a ? 1 : 0) : null;
  return {
    content: window.content,
    is_utf8: window.is_utf8,
    lines_returned: window.lines,
    more_lines: window.cut || consumed < Number(file.stat.size),
    total_lines: total,
  };
}
