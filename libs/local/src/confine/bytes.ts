const FIRST_ROOM = 4_096;

/** `buffer`, or a larger copy of it that has room for `needed` bytes. */
function withRoom(buffer: Buffer, needed: number, ceiling: number): Buffer {
  if (needed <= buffer.length) return buffer;
  const larger = Buffer.allocUnsafe(Math.min(ceiling, Math.max(FIRST_ROOM, buffer.length * 2, needed)));
  buffer.copy(larger);
  return larger;
}

/** The first `limit` bytes of a stream. They are copied together, so that a stream in tiny pieces costs what it holds and no more. */
export class FirstBytes {
  private buffer: Buffer = Buffer.alloc(0);
  private length = 0;

  constructor(private readonly limit: number) {}

  /** Tells how many bytes of the piece there was room for. */
  push(piece: Uint8Array): number {
    const part = piece.subarray(0, this.limit - this.length);
    this.buffer = withRoom(this.buffer, this.length + part.length, this.limit);
    this.buffer.set(part, this.length);
    this.length += part.length;
    return part.length;
  }

  bytes(): Buffer {
    return this.buffer.subarray(0, this.length);
  }
}

/** The last `limit` bytes of a stream, held in at most twice as much memory. */
export class LastBytes {
  private buffer: Buffer = Buffer.alloc(0);
  private length = 0;

  constructor(private readonly limit: number) {}

  push(piece: Uint8Array): void {
    const part = piece.subarray(Math.max(0, piece.length - this.limit));
    if (this.length + part.length > 2 * this.limit) {
      this.buffer.copyWithin(0, this.length - this.limit, this.length);
      this.length = this.limit;
    }
    this.buffer = withRoom(this.buffer, this.length + part.length, 2 * this.limit);
    this.buffer.set(part, this.length);
    this.length += part.length;
  }

  bytes(): Buffer {
    return this.buffer.subarray(Math.max(0, this.length - this.limit), this.length);
  }
}
