import type {
  AssistantMessage,
  ContentBlock,
  ErrorKind,
  FunctionCallBlock,
  JsonValue,
  RedactedThinkingBlock,
  StopReason,
  StreamFrame,
  Usage,
} from '#libs/contracts';

/** What sending gives back: a promise only when the reader is behind, to be awaited before the next frame. */
export type Sent = void | Promise<void>;

/** How a generation ended. */
export interface Outcome {
  stop_reason: StopReason;
  /** The vendor's own word for it. */
  native_stop_reason?: string;
  error_kind?: ErrorKind;
  error_message?: string;
  retry_after_ms?: number;
}

interface TextSlot {
  kind: 'text';
  text: string;
  sealed?: ContentBlock | null;
}
interface ThinkingSlot {
  kind: 'thinking';
  text: string;
  signature: string;
  opaque?: boolean;
  sealed?: ContentBlock | null;
}
interface OpaqueSlot {
  kind: 'opaque';
  sealed: RedactedThinkingBlock;
}
/** A function call that is being streamed. */
export interface CallSlot {
  kind: 'call';
  readonly id: string;
  readonly function_id: string;
  raw: string;
  sealed?: ContentBlock | null;
}
type Slot = TextSlot | ThinkingSlot | OpaqueSlot | CallSlot;

const START = { text: 'text_start', thinking: 'thinking_start', call: 'functioncall_start' } as const;
const END = { text: 'text_end', thinking: 'thinking_end', call: 'functioncall_end' } as const;

/** What `AssistantDraft` needs to know of the stream that it belongs to. */
export interface DraftOptions {
  provider: string;
  model: string;
  timestamp: number;
  send: (frame: StreamFrame) => Sent;
  /** Turns the arguments that a model wrote into those of the function. */
  decodeArguments?: (functionId: string, value: JsonValue) => JsonValue;
  /** Adds the price to a usage. */
  priced?: (usage: Usage) => Usage;
}

/**
 * The assistant message of one stream while it grows, and the frames that tell of it. A delta costs the same however long
 * the message is: text is appended in place, and a snapshot of the message is made at block boundaries only.
 */
export class AssistantDraft {
  private readonly slots: Slot[] = [];
  private open: Exclude<Slot, OpaqueSlot> | undefined;
  private counted: Usage | undefined;
  private begun = false;
  readonly warnings: string[] = [];

  constructor(private readonly options: DraftOptions) {}

  /** True once the vendor has begun to answer. */
  get started(): boolean {
    return this.begun;
  }

  get usageSoFar(): Usage | undefined {
    return this.counted;
  }

  get hasCalls(): boolean {
    return this.slots.some((slot) => slot.kind === 'call');
  }

  /** Announces the stream; later calls do nothing. */
  start(): Sent {
    if (this.begun) return;
    this.begun = true;
    return this.options.send({ type: 'start', partial: this.partial() });
  }

  /** Appends text; opens a text block when none is open. */
  text(delta: string): Sent {
    if (delta === '') return;
    if (this.open?.kind !== 'text') return this.begin({ kind: 'text', text: '' }).then(() => this.text(delta));
    this.open.text += delta;
    return this.options.send({ type: 'text_delta', delta });
  }

  /** Appends thinking; opens a thinking block when none is open. */
  thinking(delta: string): Sent {
    if (delta === '') return;
    if (this.open?.kind !== 'thinking') return this.openThinking().then(() => this.thinking(delta));
    this.open.text += delta;
    return this.options.send({ type: 'thinking_delta', delta });
  }

  /** Opens a thinking block, which may stay without text. */
  openThinking(): Promise<void> {
    return this.begin({ kind: 'thinking', text: '', signature: '' });
  }

  /** Appends to the signature of the open thinking block. */
  sign(signature: string): void {
    if (this.open?.kind === 'thinking') this.open.signature += signature;
  }

  /**
   * Closes the open thinking block with what its vendor needs to take it back: as its signature, or, where there is no
   * text to show, as an opaque block.
   */
  async keepThinking(packed: string | undefined): Promise<void> {
    const slot = this.open;
    if (slot?.kind !== 'thinking') return;
    slot.signature = packed ?? '';
    slot.opaque = slot.text === '';
    await this.end();
  }

  /** Adds thinking that only the vendor can read. */
  async redacted(data: string): Promise<void> {
    await this.end();
    this.slots.push({ kind: 'opaque', sealed: { type: 'redacted_thinking', data } });
  }

  /** Opens a function call. `function_id` is the real id. */
  async openCall(id: string, function_id: string): Promise<CallSlot> {
    const slot: CallSlot = { kind: 'call', id, function_id, raw: '' };
    await this.begin(slot);
    return slot;
  }

  /** Appends argument text to a call, which need not be the newest one. */
  argumentText(slot: CallSlot, delta: string): Sent {
    if (delta === '') return;
    slot.raw += delta;
    if (slot.sealed !== undefined) slot.sealed = this.block(slot);
    return this.options.send({ type: 'functioncall_delta', id: slot.id, delta });
  }

  /** Closes the open block, if there is one. A call of a stream that failed is not closed: nobody knows its end. */
  async end(failed = false): Promise<void> {
    const slot = this.open;
    if (slot === undefined || (failed && slot.kind === 'call')) return;
    this.open = undefined;
    slot.sealed = this.block(slot);
    await this.options.send({ type: END[slot.kind], partial: this.partial() });
  }

  /** Replaces the counts that `counts` has. Vendors report totals, so nothing is ever added up. */
  usage(counts: Usage): Sent {
    const known = Object.fromEntries(Object.entries(counts).filter(([, count]) => typeof count === 'number'));
    if (Object.keys(known).length === 0) return;
    const merged = { ...this.counted, ...known };
    this.counted = this.options.priced?.(merged) ?? merged;
    return this.options.send({ type: 'usage', usage: this.counted });
  }

  /** The terminal message. Calls that were still open are left out when the stream failed. */
  message(outcome: Outcome): AssistantMessage {
    const failed = outcome.stop_reason === 'error' || outcome.stop_reason === 'aborted';
    const kept = this.slots.filter((slot) => !(failed && slot.kind === 'call' && slot.sealed === undefined));
    const content = kept.map((slot) => slot.sealed ?? this.block(slot)).filter((block): block is ContentBlock => block !== null);
    if (outcome.stop_reason === 'length') this.keepCutCallRaw(kept, content);
    const { stop_reason, native_stop_reason, error_kind, error_message } = outcome;
    return {
      ...this.envelope(content, stop_reason),
      ...(native_stop_reason === undefined ? {} : { native_stop_reason }),
      ...(error_kind === undefined ? {} : { error_kind }),
      ...(error_message === undefined ? {} : { error_message }),
      ...(this.warnings.length === 0 ? {} : { warnings: [...this.warnings] }),
    };
  }

  private async begin(slot: Exclude<Slot, OpaqueSlot>): Promise<void> {
    await this.start();
    await this.end();
    this.slots.push(slot);
    this.open = slot;
    const partial = this.partial();
    await this.options.send(slot.kind === 'call' ? { type: START.call, id: slot.id, partial } : { type: START[slot.kind], partial });
  }

  /** A call that a length stop cut off keeps the text of its arguments, even where that text is empty. */
  private keepCutCallRaw(slots: readonly Slot[], content: ContentBlock[]): void {
    const last = slots.at(-1);
    if (last?.kind !== 'call') return;
    const parsed = parseJson(last.raw);
    if (typeof parsed === 'object' && parsed !== null) return;
    content[content.length - 1] = { type: 'function_call', id: last.id, function_id: last.function_id, arguments: last.raw };
  }

  private partial(): AssistantMessage {
    const content: ContentBlock[] = [];
    for (const slot of this.slots) {
      const block = slot.kind === 'opaque' || slot.sealed !== undefined ? slot.sealed : openView(slot);
      if (block) content.push(block);
    }
    return this.envelope(content, 'end');
  }

  private envelope(content: ContentBlock[], stop_reason: StopReason): AssistantMessage {
    const { model, provider, timestamp } = this.options;
    return { role: 'assistant', content, model, provider, stop_reason, timestamp, ...(this.counted ? { usage: this.counted } : {}) };
  }

  private block(slot: Slot): ContentBlock | null {
    switch (slot.kind) {
      case 'text':
        return slot.text.trim() === '' ? null : { type: 'text', text: slot.text };
      case 'thinking':
        if (slot.signature !== '' && slot.opaque === true) return { type: 'redacted_thinking', data: slot.signature };
        if (slot.signature !== '') return { type: 'thinking', text: slot.text, signature: slot.signature };
        return slot.text.trim() === '' ? null : { type: 'thinking', text: slot.text };
      case 'opaque':
        return slot.sealed;
      case 'call':
        return { type: 'function_call', id: slot.id, function_id: slot.function_id, arguments: this.argumentsOf(slot) };
      default:
        return slot satisfies never;
    }
  }

  private argumentsOf(slot: CallSlot): JsonValue {
    if (slot.raw.trim() === '') return {};
    const parsed = parseJson(slot.raw);
    if (parsed === undefined) return slot.raw;
    return this.options.decodeArguments?.(slot.function_id, parsed) ?? parsed;
  }
}

/** A block that is not finished, as it is now. Arguments are the text so far. */
function openView(slot: Exclude<Slot, OpaqueSlot>): ContentBlock {
  switch (slot.kind) {
    case 'text':
      return { type: 'text', text: slot.text };
    case 'thinking':
      return { type: 'thinking', text: slot.text };
    case 'call': {
      const call: FunctionCallBlock = {
        type: 'function_call',
        id: slot.id,
        function_id: slot.function_id,
        arguments: slot.raw === '' ? {} : slot.raw,
      };
      return call;
    }
    default:
      return slot satisfies never;
  }
}

/** The value of JSON text, or undefined when it is not JSON. */
export function parseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
