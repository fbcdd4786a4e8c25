/** A stream that the CLI prints to. */
export type OutputStream = NodeJS.WritableStream & { isTTY?: boolean; columns?: number };

const READER_GONE = new Set(['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_WRITE_AFTER_END']);

/**
 * Writes to a stream that may be slow or go away. A reader that left (`| head -1`) makes it silent; any other failure, as of
 * a full disk, is kept in `failure`.
 */
export class Output {
  /** True once nothing can be written any more. */
  closed = false;
  failure: NodeJS.ErrnoException | null = null;
  private waiting = 0;
  private behind = false;
  private settled: (() => void)[] = [];
  private readonly onError = (error: NodeJS.ErrnoException): void => {
    if (!READER_GONE.has(error.code ?? '')) this.failure ??= error;
    this.closed = true;
    this.release();
  };

  constructor(readonly stream: OutputStream) {
    stream.on('error', this.onError);
  }

  get columns(): number {
    return this.stream.columns ?? 80;
  }

  /** Hands `text` to the stream; when that is behind, it is kept in memory until the reader catches up. */
  write(text: string): void {
    if (this.closed || text === '') return;
    this.waiting += 1;
    this.behind = !this.stream.write(text, () => {
      this.waiting -= 1;
      if (this.waiting === 0) this.release();
    });
  }

  /** True while the reader is behind by more than the stream's own buffer. */
  get isBehind(): boolean {
    return this.behind && !this.closed;
  }

  /** Resolves when everything is written, or nothing can be. */
  async flushed(): Promise<void> {
    while (this.waiting > 0 && !this.closed) await new Promise<void>((resolve) => this.settled.push(resolve));
  }

  private release(): void {
    this.behind = false;
    const resolve = this.settled;
    this.settled = [];
    for (const done of resolve) done();
  }
}
