import { isUtf8 } from 'node:buffer';

/** Keeps the head and the tail of an output stream, so that memory stays bounded however much is written. */
export class OutputBuffer {
  private readonly head: Buffer[] = [];
  private headBytes = 0;
  private tail: Buffer[] = [];
  private tailBytes = 0;
  private readonly half: number;
  /** Bytes that were written in all. */
  total = 0;

  constructor(private readonly limit: number) {
    this.half = Math.max(1, Math.floor(limit / 2));
  }

  get truncated(): boolean {
    return this.total > this.limit;
  }

  push(chunk: Buffer): void {
    this.total += chunk.length;
    const room = this.half - this.headBytes;
    if (room > 0) {
      const part = chunk.subarray(0, room);
      this.head.push(part);
      this.headBytes += part.length;
    }
    const rest = chunk.subarray(Math.max(0, room));
    if (rest.length === 0) return;
    this.tail.push(rest);
    this.tailBytes += rest.length;
    while (this.tailBytes - (this.tail[0]?.length ?? 0) >= this.limit - this.half) this.tailBytes -= this.tail.shift()?.length ?? 0;
  }

  /** The output as text; where bytes were left out, a line says how many. */
  text(): string {
    const head = Buffer.concat(this.head);
    const tail = Buffer.concat(this.tail);
    if (!this.truncated) return Buffer.concat([head, tail]).toString('utf8');
    const first = wholeCharacters(head);
    const last = fromWholeCharacter(tail.subarray(Math.max(0, tail.length - (this.limit - this.half))));
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
