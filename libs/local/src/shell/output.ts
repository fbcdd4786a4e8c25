import { isUtf8 } from 'node:buffer';
import { FirstBytes, LastBytes } from '../confine/bytes.js';

/** Keeps the head and the tail of an output stream, so that memory stays bounded however much, and however finely, is written. */
export class OutputBuffer {
  private readonly head: FirstBytes;
  private readonly tail: LastBytes;
  /** Bytes that were written in all. */
  total = 0;

  constructor(private readonly limit: number) {
    const half = Math.max(1, Math.floor(limit / 2));
    this.head = new FirstBytes(half);
    this.tail = new LastBytes(limit - half);
  }

  get truncated(): boolean {
    return this.total > this.limit;
  }

  push(chunk: Buffer): void {
    this.total += chunk.length;
    this.tail.push(chunk.subarray(this.head.push(chunk)));
  }

  /** The output as text; where bytes were left out, a line says how many. */
  text(): string {
    const head = this.head.bytes();
    const tail = this.tail.bytes();
    if (!this.truncated) return Buffer.concat([head, tail]).toString('utf8');
    const first = wholeCharacters(head);
    const last = fromWholeCharacter(tail);
    const left = this.total - first.length - last.length;
    return `${first.toString('utf8')}\n[... ${left} of ${this.total} bytes left out ...]\n${last.toString('utf8')}`;
  }
}

/** Drops an incomplete character at the end. */
function wholeCharacters(bytes: Buffer): Buffer {
  for (let cut = 0; cut < 4 && cut < bytes.length; cut++) {
    const end = bytes.length - cut;
    let start = end - 1;
    while (start > 0 && end - start < 4 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--;
    if (isUtf8(bytes.subarray(start, end))) return bytes.subarray(0, end);
  }
  return bytes;
}

/** Drops the rest of a character at the start. */
function fromWholeCharacter(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.subarray(start);
}
