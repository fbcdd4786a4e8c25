import { type DynamicModule, Global, type INestMicroservice, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { AgentMessage, AssistantMessage, ProviderStreamRequest, StreamFrame } from '#libs/contracts';
import { BUS, type Bus, BusErrorFilter, type ChannelReader, IiiTransport, LocalEngine } from '#libs/iii';
import type { VendorServer } from './vendor-server.js';

/** What the stand-in for the router was told. */
export interface RouterCalls {
  register: { [key: string]: unknown }[];
  resolve: unknown[];
  reconcile: { provider?: string; models?: { id: string }[] }[];
}

/** One running stream. */
export interface OpenStream {
  result: Promise<{ ok: boolean }>;
  reader: ChannelReader;
}

@Global()
@Module({})
class BusModule {
  static with(bus: Bus): DynamicModule {
    return { module: BusModule, providers: [{ provide: BUS, useValue: bus }], exports: [BUS] };
  }
}

@Module({})
class Root {}

/** A provider on a local engine, with a stand-in for the router that sends it to a vendor server. */
export class ProviderBench {
  readonly calls: RouterCalls = { register: [], resolve: [], reconcile: [] };
  credential: string | null = 'sk-test-0123456789abcdefghijklmnop';
  apiUrl: string;
  maxTokens: number | undefined;
  /** Called in the middle of `router::provider::resolve`. */
  whileResolving: (() => void) | undefined;
  /** Called in `router::provider::register`. */
  onRegister: (() => void) | undefined;

  private constructor(
    readonly bus: Bus,
    readonly app: INestMicroservice,
    private readonly provider: string,
    url: string,
  ) {
    this.apiUrl = url;
  }

  static async start(provider: string, module: Type, server: VendorServer, path = ''): Promise<ProviderBench> {
    const engine = new LocalEngine();
    const bus = engine.connect({ name: 'bench' });
    const root = { module: Root, imports: [BusModule.with(bus), module] };
    const app = await NestFactory.createMicroservice(root, { strategy: new IiiTransport(bus), logger: false });
    app.useGlobalFilters(new BusErrorFilter());
    await app.listen();
    const bench = new ProviderBench(bus, app, provider, server.url + path);
    bench.playRouter();
    return bench;
  }

  private playRouter(): void {
    this.bus.registerFunction({ id: 'router::provider::register' }, (payload) => {
      this.calls.register.push(payload as { [key: string]: unknown });
      this.onRegister?.();
      return { ok: true, id: this.provider, registration_token: 'tok_1' };
    });
    this.bus.registerFunction({ id: 'router::provider::resolve' }, (payload) => {
      this.calls.resolve.push(payload);
      this.whileResolving?.();
      const { credential, apiUrl, maxTokens } = this;
      return {
        configured: credential !== null,
        source: credential === null ? 'none' : 'env',
        credential,
        api_url: apiUrl,
        ...(maxTokens ? { max_tokens: maxTokens } : {}),
      };
    });
    this.bus.registerFunction({ id: 'router::models::reconcile' }, (payload) => {
      const told = payload as RouterCalls['reconcile'][number];
      this.calls.reconcile.push(told);
      return { provider: this.provider, count: told.models?.length ?? 0 };
    });
  }

  /** Starts a stream; the caller reads it. */
  async open(request: Partial<ProviderStreamRequest> & { model: string }, signal?: AbortSignal): Promise<OpenStream> {
    const { reader, writerRef } = await this.bus.createChannel({ bufferSize: 1024 });
    const payload = { messages: [user('hi')], ...request, writer_ref: writerRef };
    const result = this.bus.trigger<{ ok: boolean }>({
      function_id: `provider::${this.provider}::stream`,
      payload,
      timeoutMs: 60_000,
      signal,
    });
    return { result, reader };
  }

  /** Runs a stream to its end. */
  async run(request: Partial<ProviderStreamRequest> & { model: string }): Promise<Streamed> {
    const { result, reader } = await this.open(request);
    const frames = await readAll(reader);
    return new Streamed(frames, (await result).ok);
  }

  async close(): Promise<void> {
    await this.app.close();
  }
}

/** All frames of a stream, with what tests ask of them. */
export class Streamed {
  constructor(
    readonly frames: readonly StreamFrame[],
    readonly ok: boolean,
  ) {}

  get types(): string[] {
    return this.frames.map((frame) => frame.type);
  }

  /** The terminal message; fails unless there is exactly one, at the end. */
  get message(): AssistantMessage {
    const terminal = this.frames.filter((frame) => frame.type === 'done' || frame.type === 'error');
    const last = this.frames.at(-1);
    if (terminal.length === 1 && last?.type === 'done') return last.message;
    if (terminal.length === 1 && last?.type === 'error') return last.error;
    throw new Error(`not one terminal frame at the end: ${this.types.join(' ')}`);
  }

  get retryAfterMs(): number | undefined {
    const last = this.frames.at(-1);
    return last?.type === 'error' ? last.retry_after_ms : undefined;
  }

  /** The message as a reader builds it that applies deltas only. */
  joined(type: 'text_delta' | 'thinking_delta' | 'functioncall_delta'): string {
    return this.frames.map((frame) => (frame.type === type ? frame.delta : '')).join('');
  }
}

export async function readAll(reader: ChannelReader): Promise<StreamFrame[]> {
  const frames: StreamFrame[] = [];
  for (;;) {
    const batch = await reader.next();
    if (batch === null) return frames;
    frames.push(...(batch as StreamFrame[]));
  }
}

/** Reads until a frame of `type` has come. */
export async function readTo(reader: ChannelReader, type: StreamFrame['type']): Promise<StreamFrame[]> {
  const frames: StreamFrame[] = [];
  while (!frames.some((frame) => frame.type === type)) {
    const batch = await reader.next();
    if (batch === null) throw new Error(`the stream ended before ${type}: ${frames.map((frame) => frame.type).join(' ')}`);
    frames.push(...(batch as StreamFrame[]));
  }
  return frames;
}

export const user = (text: string): AgentMessage => ({ role: 'user', content: [{ type: 'text', text }], timestamp: 1 });
export const assistant = (content: AssistantMessage['content'], over: Partial<AssistantMessage> = {}): AssistantMessage => ({
  role: 'assistant',
  content,
  model: 'm',
  provider: 'anthropic',
  stop_reason: 'end',
  timestamp: 2,
  ...over,
});
export const result = (
  function_call_id: string,
  text: string,
  over: Partial<Extract<AgentMessage, { role: 'function_result' }>> = {},
): AgentMessage => ({
  role: 'function_result',
  function_call_id,
  function_id: 'f',
  content: text === '' ? [] : [{ type: 'text', text }],
  details: null,
  is_error: false,
  timestamp: 3,
  ...over,
});
