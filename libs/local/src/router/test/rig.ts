import { type DynamicModule, Global, Module, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type {
  AssistantMessage,
  ChatRequest,
  ChatResponse,
  ProviderRegistration,
  ProviderStreamRequest,
  StreamFrame,
  Usage,
} from '#libs/contracts';
import { BUS, BusErrorFilter, type ChannelWriter, IiiTransport, type InvocationContext, type LocalBus, LocalEngine } from '#libs/iii';
import { RouterEvents } from '../events.js';
import { RouterModule } from '../router.module.js';
import { defaultRouterSettings, ROUTER_ENV, ROUTER_SETTINGS, ROUTER_TIMING, type RouterLimits, type RouterSettings } from '../settings.js';

/** A frame, or an error frame with what the vendor asks to wait. */
export type ScriptFrame = StreamFrame | { type: 'error'; error: AssistantMessage; retry_after_ms?: number };

/** A provider that does what each call in turn says; it fails on calls that nobody planned. */
export interface FakeProvider {
  readonly requests: ProviderStreamRequest[];
  /** Settles when the router has closed the channel of a call that waits for that. */
  readonly cancelled: Promise<void>;
}
/** What a fake provider does in one call. Returning closes the channel. */
export type Play = (writer: ChannelWriter, request: ProviderStreamRequest) => void | Promise<void>;

export interface Rig {
  engine: LocalEngine;
  bus: LocalBus;
  settings: RouterSettings;
  /** The pauses before further tries, in ms. */
  pauses: number[];
  events: RouterEvents;
  provider(id: string, plays: Play[], registration?: Partial<ProviderRegistration>): Promise<FakeProvider>;
  chat(request: Partial<ChatRequest>): Promise<{ frames: StreamFrame[]; response: ChatResponse }>;
  call<T>(function_id: string, payload: unknown): Promise<T>;
  close(): Promise<void>;
}

export interface RigOptions {
  settings?: Partial<Omit<RouterSettings, 'settings'>> & { settings?: Partial<RouterLimits> };
  env?: { [name: string]: string };
  modules?: Type<unknown>[];
  /** What chance gives; 1 makes every pause its longest. */
  random?: number;
}

/** A router on a local engine, behind the real transport. */
export async function makeRig(options: RigOptions = {}): Promise<Rig> {
  const engine = new LocalEngine({ report: (message, context) => process.emitWarning(`${message} ${JSON.stringify(context)}`) });
  const bus = engine.connect({ name: 'router-test' });
  const settings: RouterSettings = {
    ...defaultRouterSettings,
    ...options.settings,
    settings: { ...defaultRouterSettings.settings, ...options.settings?.settings },
  };
  const pauses: number[] = [];
  const timing = {
    random: () => options.random ?? 1,
    sleep: (ms: number) => {
      pauses.push(ms);
      return Promise.resolve();
    },
  };
  const module = await Test.createTestingModule({
    imports: [globals(bus, settings, options.env ?? {}, timing), RouterModule, ...(options.modules ?? [])],
  }).compile();
  const app = module.createNestMicroservice({ strategy: new IiiTransport(bus) });
  app.useLogger(false);
  app.useGlobalFilters(new BusErrorFilter());
  await app.listen();
  const call = <T>(function_id: string, payload: unknown): Promise<T> => bus.trigger<T>({ function_id, payload });
  return {
    engine,
    bus,
    settings,
    pauses,
    call,
    events: module.get(RouterEvents),
    provider: (id, plays, registration = {}) => addProvider(engine, id, plays, registration),
    async chat(request) {
      const channel = await bus.createChannel();
      const read = readAll(channel.reader);
      const payload: ChatRequest = { model: 'm', messages: [], writer_ref: channel.writerRef, ...request };
      const response = await call<ChatResponse>('router::chat', payload);
      return { frames: await read, response };
    },
    close: () => app.close(),
  };
}

function globals(bus: LocalBus, settings: RouterSettings, env: object, timing: object): DynamicModule {
  const providers = [
    { provide: BUS, useValue: bus },
    { provide: ROUTER_SETTINGS, useValue: { current: () => settings } },
    { provide: ROUTER_ENV, useValue: env },
    { provide: ROUTER_TIMING, useValue: timing },
  ];
  class Globals {}
  Global()(Globals);
  Module({})(Globals);
  return { module: Globals, providers, exports: providers.map(({ provide }) => provide) };
}

async function addProvider(
  engine: LocalEngine,
  id: string,
  plays: Play[],
  registration: Partial<ProviderRegistration>,
): Promise<FakeProvider> {
  const worker = engine.connect({ name: `provider-${id}` });
  const requests: ProviderStreamRequest[] = [];
  let cancel = (): void => undefined;
  const cancelled = new Promise<void>((resolve) => {
    cancel = resolve;
  });
  worker.registerFunction({ id: `provider::${id}::stream` }, async (payload: unknown, _context: InvocationContext) => {
    const request = payload as ProviderStreamRequest;
    const play = plays[requests.push(request) - 1];
    const writer = worker.openWriter(request.writer_ref);
    writer.signal.addEventListener('abort', cancel);
    try {
      if (play === undefined) throw new Error(`call ${requests.length} of provider ${id} was not planned`);
      await play(writer, request);
    } finally {
      writer.close();
    }
    return { ok: true };
  });
  await worker.trigger({ function_id: 'router::provider::register', payload: { id, ...registration } });
  return { requests, cancelled };
}

/** Everything that comes out of a channel until it closes. */
export async function readAll(reader: { next(): Promise<readonly unknown[] | null> }): Promise<StreamFrame[]> {
  const frames: StreamFrame[] = [];
  for (let batch = await reader.next(); batch !== null; batch = await reader.next()) frames.push(...(batch as StreamFrame[]));
  return frames;
}

/** A provider's message. */
export const message = (over: Partial<AssistantMessage> = {}): AssistantMessage => ({
  role: 'assistant',
  content: [{ type: 'text', text: 'hello' }],
  model: 'm',
  provider: 'p',
  stop_reason: 'end',
  timestamp: 1,
  ...over,
});

/** Sends frames and returns. */
export const sends =
  (...frames: ScriptFrame[]): Play =>
  async (writer) => {
    for (const frame of frames) await writer.send(frame);
  };

/** Sends frames, then nothing until the router closes the channel. */
export const stalls =
  (...frames: ScriptFrame[]): Play =>
  async (writer) => {
    for (const frame of frames) await writer.send(frame);
    if (!writer.signal.aborted) await new Promise((resolve) => writer.signal.addEventListener('abort', resolve, { once: true }));
  };

export const start: StreamFrame = { type: 'start', partial: message({ content: [] }) };
export const delta = (text: string): StreamFrame => ({ type: 'text_delta', delta: text });
export const done = (usage?: Usage): StreamFrame => ({ type: 'done', message: message(usage === undefined ? {} : { usage }) });
/** An error frame; `retry_after_ms` when the vendor says it. */
export const failed = (kind: AssistantMessage['error_kind'], text: string, retry_after_ms?: number): ScriptFrame => ({
  type: 'error',
  error: message({ content: [], stop_reason: 'error', error_kind: kind, error_message: text }),
  ...(retry_after_ms === undefined ? {} : { retry_after_ms }),
});
/** A whole good answer. */
export const good = (): Play => sends(start, { type: 'text_start' }, delta('hel'), delta('lo'), { type: 'text_end' }, done());

/** The types of frames, for a short comparison. */
export const types = (frames: readonly StreamFrame[]): string => frames.map((frame) => frame.type).join(' ');
/** How many frames end the stream. */
export const terminals = (frames: readonly StreamFrame[]): number =>
  frames.filter((frame) => frame.type === 'done' || frame.type === 'error').length;
