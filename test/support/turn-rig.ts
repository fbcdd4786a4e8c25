import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type {
  Entry,
  FunctionResolveResponse,
  FunctionResultMessage,
  JsonValue,
  SendRequest,
  SendResponse,
  StatusReport,
  StopResponse,
} from '#libs/contracts';
import type { GatewaySettings } from '#libs/iii';
import { type EmbeddedRuntime, openRuntime, type RuntimeRole } from '#libs/local';
import type { FeedEvent } from '#libs/turn';
import { type DiskSession, readDisk } from './disk.js';
import { requestFaults, sessionFaults } from './invariants.js';
import { lines } from './lines.js';
import { ScriptedModel } from './scripted-model.js';

type Finished = Extract<FeedEvent, { type: 'turn_finished' }>;
/** How long a test waits for something, in ms, unless told otherwise. */
const PATIENCE_MS = 10_000;

export interface TurnRigOptions {
  model?: ScriptedModel;
  /** Limits of the model in the router's catalog. */
  limits?: { context_window: number; max_output_tokens: number };
  /** The fields of the `harness` entry, as YAML. */
  config?: string;
  dataDir?: string;
  role?: RuntimeRole;
  leaseMs?: number;
  patienceMs?: number;
  gateway?: GatewaySettings;
  siblings?: string;
  redisUrl?: string;
  prepare?: (runtime: EmbeddedRuntime) => void | Promise<void>;
}

/** A runtime over a data folder of its own with the scripted model, and short ways to use it. */
export class TurnRig {
  readonly events: FeedEvent[] = [];
  /** What went wrong in the background. */
  readonly reports: string[] = [];
  runtime!: EmbeddedRuntime;
  private readonly finished = new Map<string, Finished>();
  private readonly listeners = new Set<(event: FeedEvent) => void>();

  private constructor(
    readonly dataDir: string,
    readonly model: ScriptedModel,
    private readonly patienceMs: number,
  ) {}

  static async open(options: TurnRigOptions = {}): Promise<TurnRig> {
    const rig = new TurnRig(
      options.dataDir ?? mkdtempSync(join(tmpdir(), 'harness-rig-')),
      options.model ?? new ScriptedModel(),
      options.patienceMs ?? PATIENCE_MS,
    );
    if (options.config !== undefined) {
      mkdirSync(join(rig.dataDir, 'config'), { recursive: true });
      writeFileSync(join(rig.dataDir, 'config', 'harness.yaml'), options.config);
    }
    rig.runtime = await openRuntime({
      dataDir: rig.dataDir,
      role: options.role ?? 'client',
      ...(options.leaseMs === undefined ? {} : { leaseMs: options.leaseMs }),
      ...(options.gateway === undefined ? {} : { gateway: options.gateway }),
      ...(options.siblings === undefined ? {} : { siblings: options.siblings }),
      ...(options.redisUrl === undefined ? {} : { redisUrl: options.redisUrl }),
      prepare: async (opened) => {
        opened.feed.subscribe((event) => rig.take(event));
        await rig.model.register(opened.bus, 'scripted', 'all', options.limits);
        await options.prepare?.(opened);
      },
      log: (level, message, context) => {
        if (level === 'warn' || level === 'error') rig.reports.push(`${level}: ${message} ${JSON.stringify(context)}`);
      },
    });
    return rig;
  }

  call<T = unknown>(function_id: string, payload: unknown = {}, metadata?: JsonValue): Promise<T> {
    return this.runtime.bus.trigger<T>({ function_id, payload, ...(metadata === undefined ? {} : { metadata }) });
  }

  /** Registers a function and returns the payloads that it got. */
  function(id: string, run: (payload: unknown) => unknown = () => ({ ok: true })): unknown[] {
    const payloads: unknown[] = [];
    this.runtime.bus.registerFunction({ id }, (payload) => {
      payloads.push(payload);
      return run(payload);
    });
    return payloads;
  }

  /** Binds a function to a trigger type, e.g. a hook point. */
  bind(type: string, function_id: string, config: JsonValue = {}): { unregister(): void } {
    return this.runtime.bus.registerTrigger({ type, function_id, config });
  }

  /** Registers a function and binds it to a trigger type. */
  on(type: string, function_id: string, run: (input: never) => unknown, config: JsonValue = {}): unknown[] {
    const payloads = this.function(function_id, (payload) => run(payload as never));
    this.bind(type, function_id, config);
    return payloads;
  }

  /** Sends with every function allowed, unless told otherwise. */
  send(message: SendRequest['message'], over: Partial<SendRequest> = {}): Promise<SendResponse> {
    return this.call<SendResponse>('harness::send', {
      message,
      model: 'scripted-1',
      provider: 'scripted',
      options: { functions: { allow: ['*'] } },
      ...over,
    });
  }

  stop(session_id: string, turn_id?: string): Promise<StopResponse> {
    return this.call('harness::stop', { session_id, turn_id });
  }

  /** Lets a held call go on. */
  release(session_id: string, turn_id: string, function_call_id: string): Promise<FunctionResolveResponse> {
    return this.call('harness::function::resolve', { session_id, turn_id, function_call_id, action: 'execute' });
  }

  /** Answers a pending call with a text. */
  deliver(session_id: string, turn_id: string, function_call_id: string, text: string): Promise<FunctionResolveResponse> {
    return this.call('harness::function::resolve', { session_id, turn_id, function_call_id, content: [{ type: 'text', text }] });
  }

  /** The end of a turn. */
  end(turnId: string): Promise<Finished> {
    const known = this.finished.get(turnId);
    if (known !== undefined) return Promise.resolve(known);
    return this.seen(`the end of turn ${turnId}`, (event): event is Finished => event.type === 'turn_finished' && event.turn_id === turnId);
  }

  /** The first event, of those that came and those to come, that is wanted. */
  async seen<T extends FeedEvent>(what: string, isIt: (event: FeedEvent) => event is T): Promise<T> {
    const known = this.events.find(isIt);
    if (known !== undefined) return known;
    let timer: NodeJS.Timeout | undefined;
    let listener: (event: FeedEvent) => void = () => undefined;
    try {
      return await new Promise<T>((resolve, reject) => {
        listener = (event) => {
          if (isIt(event)) resolve(event);
        };
        this.listeners.add(listener);
        timer = setTimeout(() => reject(new Error(`${what} did not come; not at rest: ${this.stored()}`)), this.patienceMs);
      });
    } finally {
      clearTimeout(timer);
      this.listeners.delete(listener);
    }
  }

  /** Waits for a turn of the session that is none of `known`. */
  async nextTurn(session_id: string, ...known: string[]): Promise<string> {
    type Started = Extract<FeedEvent, { type: 'turn_started' }>;
    const isNew = (event: FeedEvent): event is Started =>
      event.type === 'turn_started' && event.session_id === session_id && !known.includes(event.turn_id);
    return (await this.seen(`another turn of ${session_id}`, isNew)).turn_id;
  }

  /** Sends and waits for the end. */
  async turn(message: SendRequest['message'], over: Partial<SendRequest> = {}): Promise<Finished> {
    return await this.end((await this.send(message, over)).turn_id);
  }

  status(session_id: string): Promise<StatusReport | null> {
    return this.call('harness::status', { session_id });
  }

  /** Waits until the status of a session's turn is `wanted`; fails with what it is when that does not come. */
  async until(session_id: string, wanted: StatusReport['status']): Promise<StatusReport> {
    const deadline = Date.now() + this.patienceMs;
    for (;;) {
      const report = await this.status(session_id);
      if (report?.status === wanted) return report;
      if (Date.now() > deadline) throw new Error(`the turn is ${JSON.stringify(report)}, not ${wanted}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async entries(session_id: string): Promise<Entry[]> {
    const { messages } = await this.call<{ messages: { entry_id: string }[] }>('session::messages', {
      session_id,
      limit: 500,
      include_custom: true,
    });
    const found = await Promise.all(
      messages.map(({ entry_id }) => this.call<{ entry: Entry } | null>('session::get-message', { session_id, entry_id })),
    );
    return found.flatMap((row) => (row === null ? [] : [row.entry]));
  }

  async results(session_id: string): Promise<FunctionResultMessage[]> {
    return (await this.entries(session_id)).flatMap((entry) =>
      entry.kind === 'message' && entry.message.role === 'function_result' ? [entry.message] : [],
    );
  }

  /** A session as it is on disk. */
  disk(session_id: string): DiskSession {
    const session = readDisk(this.dataDir).sessions.find((s) => s.session_id === session_id);
    if (session === undefined) throw new Error(`session ${session_id} is not stored`);
    return session;
  }

  /** What a session's conversation looks like on disk; see `lines`. */
  lines(session_id: string): string[] {
    return lines(this.disk(session_id).entries);
  }

  /** What is broken once all turns are over: invariants of the stored sessions, requests that no provider would take, reports. */
  faults(): string[] {
    const requests = this.model.requests.flatMap(({ messages }, index) =>
      requestFaults(messages).map((fault) => `request ${index}: ${fault}`),
    );
    return [...readDisk(this.dataDir).sessions.flatMap(sessionFaults), ...requests, ...this.reports];
  }

  async close(keep = false): Promise<void> {
    await this.runtime.close();
    if (!keep) rmSync(this.dataDir, { recursive: true, force: true });
  }

  private take(event: FeedEvent): void {
    this.events.push(event);
    if (event.type === 'turn_finished') this.finished.set(event.turn_id, event);
    for (const listener of this.listeners) listener(event);
  }

  /** The sessions whose turn has not ended. */
  private stored(): string {
    const open = readDisk(this.dataDir).sessions.filter(({ turn }) => turn?.status === 'running' || turn?.status === 'awaiting_functions');
    return open
      .map(
        ({ session_id, turn, entries }) =>
          `${session_id}: ${JSON.stringify({ ...turn?.record, options: undefined })} after ${JSON.stringify(lines(entries).slice(-8))}`,
      )
      .join('; ');
  }
}
