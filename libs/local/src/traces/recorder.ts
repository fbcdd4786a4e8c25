import { errorMessage } from '#libs/contracts';
import type { SpanSink, TracePart } from '#libs/turn';
import type { SqliteWriter } from '../sqlite/index.js';
import type { SpanTable } from './span-table.js';

/** How long a span may wait to be stored, in ms. */
const FLUSH_MS = 250;
/** Parts that may wait; when more come, the newest are dropped, so that a busy worker spends its time on turns. */
const MAX_WAITING = 250;
/** How long the last export may take when the process ends, in ms. */
const EXPORT_GRACE_MS = 3_000;

/** Where spans are exported to. */
export interface SpanExport {
  export(part: TracePart): void;
  /** Sends what is waiting, for at most `graceMs`. */
  close(graceMs: number): Promise<void>;
}

export interface RecorderOptions {
  /** Traces that are kept; 0 = none. */
  keep: () => number;
  /** Where spans go besides. */
  otlp: SpanExport | null;
  report: (message: string, context: { [key: string]: unknown }) => void;
}

/** Takes finished spans and stores them in batches, away from the turns that they tell of. */
export class SpanRecorder implements SpanSink {
  private waiting: TracePart[] = [];
  private timer: NodeJS.Timeout | undefined;
  private failed = false;

  constructor(
    private readonly table: SpanTable,
    private readonly writer: SqliteWriter,
    private readonly options: RecorderOptions,
  ) {}

  get isOpen(): boolean {
    return this.options.otlp !== null || this.hasRoom;
  }

  record(part: TracePart): void {
    if (part.sampled) this.options.otlp?.export(part);
    if (!this.hasRoom) return;
    this.waiting.push(part);
    this.timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
  }

  private get hasRoom(): boolean {
    return this.waiting.length < MAX_WAITING && this.options.keep() > 0;
  }

  /** Stores what is waiting. A failure is reported, once until it is over; the spans are lost then, the turns are not. */
  async flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    const parts = byTurn(this.waiting.splice(0));
    if (parts.length === 0) return;
    try {
      await this.writer.submit(() => this.table.add(parts, this.options.keep()), 'spans');
      this.failed = false;
    } catch (error) {
      if (!this.failed) this.options.report('traces cannot be stored', { error: errorMessage(error) });
      this.failed = true;
    }
  }

  /** Stores and exports what is left. */
  async close(): Promise<void> {
    await Promise.all([this.flush(), this.options.otlp?.close(EXPORT_GRACE_MS)]);
  }
}

/** One part for each turn, in the order of their first ones. */
function byTurn(parts: readonly TracePart[]): TracePart[] {
  const turns = new Map<string, TracePart>();
  for (const part of parts) {
    const key = `${part.trace_id} ${part.turn_id}`;
    const before = turns.get(key);
    turns.set(key, before === undefined ? part : { ...before, spans: [...before.spans, ...part.spans] });
  }
  return [...turns.values()];
}
