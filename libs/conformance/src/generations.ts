import {
  type AssistantMessage,
  type ContentBlock,
  callsOf,
  type JsonValue,
  type ProviderStreamRequest,
  type StopReason,
  type StreamFrame,
} from '#libs/contracts';
import type { ChannelWriter } from '#libs/iii';

/** One generation of the scripted model: the frames that it writes. */
export type Generation = (request: ProviderStreamRequest, stream: GenerationStream) => Promise<void>;

/** How often a silent model says that it is there, in ms. */
const PING_MS = 200;

/** The usage that each generation tells of, in tokens. */
const USAGE = { input: 10, output: 5 };

/** The stream of one generation. */
export class GenerationStream {
  private content: ContentBlock[] = [];

  constructor(
    private readonly writer: ChannelWriter,
    private readonly provider: string,
    private readonly model: string,
  ) {}

  /** Aborted when whoever asked has closed the stream. */
  get signal(): AbortSignal {
    return this.writer.signal;
  }

  async start(): Promise<void> {
    await this.send({ type: 'start', partial: this.message('end') });
  }

  /** Streams a block of text, in one delta. */
  async text(text: string): Promise<void> {
    await this.send({ type: 'text_start', partial: this.message('end') });
    this.content = [...this.content, { type: 'text', text }];
    await this.send({ type: 'text_delta', delta: text, partial: this.message('end') });
    await this.send({ type: 'text_end', partial: this.message('end') });
  }

  /** Ends the generation with what was streamed and these blocks. */
  async done(blocks: readonly ContentBlock[] = [], reason?: StopReason): Promise<void> {
    this.content = [...this.content, ...blocks];
    const message = this.message(reason ?? (callsOf(this.content).length > 0 ? 'function_call' : 'end'));
    await this.send({ type: 'done', message });
  }

  /** Ends it with an error that no retry helps. */
  async fail(error_message: string): Promise<void> {
    await this.send({ type: 'error', error: { ...this.message('error'), error_kind: 'permanent', error_message } });
  }

  /** Says that the model is still there. */
  async ping(): Promise<void> {
    await this.send({ type: 'ping' });
  }

  close(): void {
    this.writer.close();
  }

  private async send(frame: StreamFrame): Promise<void> {
    await this.writer.send(frame);
  }

  private message(stop_reason: StopReason): AssistantMessage {
    const { content, provider, model } = this;
    return { role: 'assistant', content, provider, model, stop_reason, usage: USAGE, timestamp: Date.now() };
  }
}

/** A generation that answers with a text. */
export const says =
  (text: string): Generation =>
  async (_request, stream) => {
    await stream.start();
    await stream.text(text);
    await stream.done();
  };

/** A generation that makes calls. */
export const asks =
  (...calls: readonly ContentBlock[]): Generation =>
  async (_request, stream) => {
    await stream.start();
    await stream.done(calls);
  };

/** A call block as a model makes it that is offered `agent_trigger`. */
export const call = (id: string, fn: string, payload: JsonValue = {}): ContentBlock => ({
  type: 'function_call',
  id,
  function_id: 'agent_trigger',
  arguments: { function: fn, description: 'a call of the conformance run', payload },
});

/** A generation that a scenario holds in its hands. */
export class Held {
  /** True once it has begun and its first text is on its way. */
  begun = false;
  /** True once whoever asked has closed the stream. */
  closed = false;
  private end: (blocks: readonly ContentBlock[] | null) => void = () => undefined;
  private readonly ended = new Promise<readonly ContentBlock[] | null>((resolve) => {
    this.end = resolve;
  });

  /** It streams `text` and then waits. */
  constructor(private readonly text: string) {}

  readonly generation: Generation = async (_request, stream) => {
    const onAbort = (): void => {
      this.closed = true;
      this.end(null);
    };
    stream.signal.addEventListener('abort', onAbort, { once: true });
    await stream.start();
    await stream.text(this.text);
    this.begun = true;
    // A model that is silent says that it is still there; an engine may notice only then that nobody reads any more.
    const pings = setInterval(() => void stream.ping(), PING_MS);
    const blocks = await this.ended.finally(() => clearInterval(pings));
    if (blocks !== null) await stream.done(blocks);
  };

  /** Lets it end with these blocks. */
  finish(...blocks: readonly ContentBlock[]): void {
    this.end(blocks);
  }
}
