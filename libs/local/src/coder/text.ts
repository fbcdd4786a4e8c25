import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';

const SLICE = 1_048_576;
const NEWLINE = 0x0a;

/** Identifies the content of a file; equal bytes have equal revisions. */
export async function revisionOf(bytes: Buffer): Promise<string> {
  const hash = createHash('sha256');
  for (let at = 0; at < bytes.length; at += SLICE) {
    hash.update(bytes.subarray(at, at + SLICE));
    if (at + SLICE < bytes.length) await nextTurn();
  }
  return `sha256:${hash.digest('hex').slice(0, 32)}`;
}

/** Offsets at which lines begin. A newline at the end begins no further line; an empty text has no line. */
export async function lineStarts(bytes: Buffer): Promise<number[]> {
  const starts: number[] = [];
  let pause = SLICE;
  for (let at = 0; at < bytes.length; ) {
    starts.push(at);
    const end = bytes.indexOf(NEWLINE, at);
    at = end < 0 ? bytes.length : end + 1;
    if (at > pause) {
      pause = at + SLICE;
      await nextTurn();
    }
  }
  return starts;
}

/** Longest prefix of `bytes` that is at most `limit` bytes and ends on a whole UTF-8 character. */
export function cutBytes(bytes: Buffer, limit: number): Buffer {
  if (bytes.length <= limit) return bytes;
  let end = limit;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80 && limit - end < 4) end--;
  return bytes.subarray(0, end);
}

/** Cuts `text` at a whole character so that at most `limit` UTF-16 units remain. */
export function cutText(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const code = text.charCodeAt(limit - 1);
  return text.slice(0, code >= 0xd800 && code <= 0xdbff ? limit - 1 : limit);
}
