import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import type { Model, ProviderInfo, SendRequest } from '#libs/contracts';
import type { EmbeddedRuntime, OpenRuntimeOptions, TurnOwner } from '#libs/local';
import { defaultSettings, type FeedEvent, LiveFeed } from '#libs/turn';
import type { CliIo } from '../src/cli/cli.js';
import { runCli } from '../src/cli/run.js';

type Handler = (payload: never) => unknown;
export const IDS = { session_id: 's_1', turn_id: 't_1' } as const;
export const TOTALS = { input_tokens: 1200, output_tokens: 345, cache_read_tokens: 0, cache_write_tokens: 0, cost_usd: 0.0012 };
const DEMO: ProviderInfo = { id: 'demo', display_name: 'Demo', configured: true, available: true, supports_model_listing: true };
const OPENAI: ProviderInfo = {
  id: 'openai',
  display_name: 'OpenAI',
  configured: false,
  available: true,
  supports_model_listing: true,
  credential_env_var: 'OPENAI_API_KEY',
};
const model = (id: string, provider: string): Model => ({ id, provider, context_window: 100_000, max_output_tokens: 8_000 });
export const CATALOG = { providers: [OPENAI, DEMO], models: [model('gpt-large', 'openai'), model('demo-1', 'demo')] };

/** Events of a turn that says `text`, with its end. */
export const said = (...text: string[]): FeedEvent[] => [
  { type: 'turn_started', ...IDS, model: 'demo-1', provider: 'demo', timestamp: 1 },
  { type: 'step_started', ...IDS, step: 0 },
  ...text.map((delta): FeedEvent => ({ type: 'text_delta', ...IDS, step: 0, delta })),
  { type: 'message_finished', ...IDS, step: 0, stop_reason: 'end', provider: 'demo', model: 'demo-1', usage: null },
  ended('completed'),
];
export const ended = (
  status: 'completed' | 'failed' | 'cancelled',
  more: Partial<Extract<FeedEvent, { type: 'turn_finished' }>> = {},
): FeedEvent => ({
  type: 'turn_finished',
  ...IDS,
  status,
  reason: null,
  result: null,
  result_error: null,
  steps: 1,
  calls: 0,
  totals: TOTALS,
  duration_ms: 1300,
  ...more,
});

/** A runtime whose functions and events a test scripts. */
export class FakeRuntime implements EmbeddedRuntime {
  readonly dataDir = '/data';
  readonly commits = 0;
  readonly feed = new LiveFeed();
  settings = { current: () => ({ ...defaultSettings }) };
  readonly calls: { function_id: string; payload: unknown }[] = [];
  readonly closes: (number | undefined)[] = [];
  readonly adopted: string[] = [];
  owner: TurnOwner = 'self';
  stored: FeedEvent[] = [];
  followed: ({ fromStart?: boolean } | undefined)[] = [];
  opened: OpenRuntimeOptions | null = null;
  /** Published one after the other once a message is sent. */
  script: FeedEvent[] = said('hello');
  readonly functions: { [id: string]: Handler } = {
    'router::provider::list': () => ({ providers: CATALOG.providers }),
    'router::models::list': () => ({ models: CATALOG.models }),
    'harness::status': () => null,
    'harness::send': () => {
      queueMicrotask(() => this.play(this.script));
      return { accepted: true, ...IDS };
    },
  };

  configurationFaults(): readonly string[] {
    return [];
  }

  readonly bus = {
    trigger: async <T>({ function_id, payload }: { function_id: string; payload: unknown }): Promise<T> => {
      this.calls.push({ function_id, payload });
      const handler = this.functions[function_id];
      if (handler === undefined) throw new Error(`function_not_found: ${function_id}`);
      return (await handler(payload as never)) as T;
    },
  } as EmbeddedRuntime['bus'];

  play(events: readonly FeedEvent[]): void {
    for (const event of events) this.feed.publish(event);
  }

  sent(): SendRequest {
    return this.calls.find((call) => call.function_id === 'harness::send')?.payload as SendRequest;
  }

  turnOwner(): Promise<TurnOwner> {
    return Promise.resolve(this.owner);
  }

  adopt(sessionId: string): Promise<boolean> {
    this.adopted.push(sessionId);
    this.owner = 'self';
    queueMicrotask(() => this.play(this.script));
    return Promise.resolve(true);
  }

  async *follow(_sessionId: string, _turnId: string, options?: { fromStart?: boolean }): AsyncGenerator<FeedEvent> {
    this.followed.push(options);
    for (const event of this.stored) {
      await Promise.resolve();
      yield event;
    }
  }

  close(graceMs?: number): Promise<void> {
    this.closes.push(graceMs);
    return Promise.resolve();
  }
}

export interface Run {
  code: number;
  stdout: string;
  stderr: string;
  /** Both, in the order of writing, as a terminal shows them. */
  both: string;
  exits: number[];
}
export interface RunOptions {
  runtime?: FakeRuntime;
  stdin?: string | Uint8Array;
  tty?: boolean;
  columns?: number;
  env?: NodeJS.ProcessEnv;
  signals?: EventEmitter;
  open?: CliIo['openRuntime'];
  now?: () => number;
  stdout?: NodeJS.WritableStream;
}

/** Runs the CLI in this process, over a fake runtime and fake streams. */
export async function run(
  argv: readonly string[],
  {
    runtime = new FakeRuntime(),
    stdin,
    tty = false,
    columns = 80,
    env = {},
    signals = new EventEmitter(),
    open,
    now = () => 1_000_000,
    stdout,
  }: RunOptions = {},
): Promise<Run> {
  const result: Run = { code: -1, stdout: '', stderr: '', both: '', exits: [] };
  const sink = (name: 'stdout' | 'stderr'): CliIo['stdout'] => {
    const stream = Object.assign(new PassThrough(), { isTTY: tty, columns });
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      result[name] += text;
      result.both += text;
    });
    return stream;
  };
  const input =
    stdin === undefined
      ? Object.assign(new PassThrough(), { isTTY: true })
      : PassThrough.from([typeof stdin === 'string' ? Buffer.from(stdin) : stdin]);
  result.code = await runCli(argv, {
    stdin: input,
    stdout: stdout ?? sink('stdout'),
    stderr: sink('stderr'),
    env: { HOME: '/home/somebody', ...env },
    signals,
    openRuntime:
      open ??
      (async (options) => {
        runtime.opened = options;
        await options.prepare?.(runtime);
        return runtime;
      }),
    exit: (code) => result.exits.push(code),
    now,
  });
  return result;
}
