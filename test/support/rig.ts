import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type FunctionResultMessage,
  type ProviderStreamRequest,
  type SendRequest,
  type SendResponse,
  type StatusReport,
  type StopResponse,
  textOf,
} from '#libs/contracts';
import { type EmbeddedRuntime, openRuntime, type RuntimeRole } from '#libs/local';
import type { FeedEvent } from '#libs/turn';
import { type DiskEntry, type DiskSession, readDisk } from './disk.js';
import { requestFaults, resultsOf, sessionFaults } from './invariants.js';
import { ScriptedModel } from './scripted-model.js';

type Finished = Extract<FeedEvent, { type: 'turn_finished' }>;
type Started = Extract<FeedEvent, { type: 'turn_started' }>;
/** How long a test waits for a turn, in ms. */
const PATIENCE_MS = 10_000;

/** Settings that make streams store often and tries come soon. */
const QUICK = {
  'harness.yaml': 'stream_coalesce_ms: 10\nstep_backoff_ms: 5\ndispatch_timeout_ms: 400\n',
  'llm-router.yaml': 'settings:\n  retry_base_ms: 1\n  retry_cap_ms: 5\n',
};

/** A real runtime over a data folder of its own, with the scripted model. */
export class Rig {
  readonly events: FeedEvent[] = [];
  /** What went wrong in the background. */
  readonly reports: string[] = [];
  runtime!: EmbeddedRuntime;
  private readonly waiting = new Set<(event: FeedEvent) => void>();

  private constructor(
    readonly dataDir: string,
    readonly model: ScriptedModel,
  ) {}

  static async open(role: RuntimeRole = 'worker', config: { [file: string]: string } = QUICK): Promise<Rig> {
    const rig = new Rig(mkdtempSync(join(tmpdir(), 'harness-e2e-')), new ScriptedModel());
    mkdirSync(join(rig.dataDir, 'config'));
    for (const [file, text] of Object.entries(config)) writeFileSync(join(rig.dataDir, 'config', file), text);
    rig.runtime = await openRuntime({
      dataDir: rig.dataDir,
      role,
      prepare: (runtime) => rig.prepare(runtime),
      log: (level, message, context) => rig.log(level, message, context),
    });
    return rig;
  }

  /** Calls any function on the bus. */
  call<T = unknown>(function_id: string, payload: unknown = {}): Promise<T> {
    return this.runtime.bus.trigger<T>({ function_id, payload });
  }

  send(session_id: string, message: SendRequest['message'], rest: Partial<SendRequest> = {}): Promise<SendResponse> {
    return this.call('harness::send', { session_id, message, model: 'scripted-1', provider: 'scripted', ...rest });
  }

  stop(session_id: string, turn_id?: string): Promise<StopResponse> {
    return this.call('harness::stop', { session_id, turn_id });
  }

  status(session_id: string): Promise<StatusReport | null> {
    return this.call('harness::status', { session_id });
  }

  /** Sends a message and waits for the end of its turn; gives the session as it is on disk then. */
  async turn(session_id: string, message: SendRequest['message'], rest: Partial<SendRequest> = {}): Promise<DiskSession> {
    const { turn_id } = await this.send(session_id, message, rest);
    await this.over(turn_id);
    return this.disk(session_id);
  }

  /** Waits for the end of a turn. */
  over(turnId: string): Promise<Finished> {
    return this.seen(`the end of turn ${turnId}`, (event): event is Finished => event.type === 'turn_finished' && event.turn_id === turnId);
  }

  /** Waits for a turn of the session that no send was answered with; gives its id. */
  async nextTurn(sessionId: string, before: string): Promise<string> {
    const { turn_id } = await this.seen(
      `another turn of ${sessionId}`,
      (event): event is Started => event.type === 'turn_started' && event.session_id === sessionId && event.turn_id !== before,
    );
    return turn_id;
  }

  /** Waits for an event, also one that came before; says what is stored when it does not come. */
  private async seen<T extends FeedEvent>(what: string, isIt: (event: FeedEvent) => event is T): Promise<T> {
    const known = this.events.find(isIt);
    if (known !== undefined) return known;
    let timer: NodeJS.Timeout | undefined;
    let listener: (event: FeedEvent) => void = () => undefined;
    try {
      return await new Promise<T>((resolve, reject) => {
        listener = (event) => {
          if (isIt(event)) resolve(event);
        };
        this.waiting.add(listener);
        timer = setTimeout(() => {
          const turns = readDisk(this.dataDir).sessions.map((session) => ({
            id: session.session_id,
            turn: session.turn,
            lines: lines(session.entries),
          }));
          reject(new Error(`${what} did not come; stored is ${JSON.stringify(turns.slice(-3), null, 1)}`));
        }, PATIENCE_MS);
      });
    } finally {
      clearTimeout(timer);
      this.waiting.delete(listener);
    }
  }

  disk(session_id: string): DiskSession {
    const session = readDisk(this.dataDir).sessions.find((s) => s.session_id === session_id);
    if (session === undefined) throw new Error(`session ${session_id} is not stored`);
    return session;
  }

  /** The requests that the model got since there were `from` of them. */
  requests(from = 0): ProviderStreamRequest[] {
    return this.model.requests.slice(from);
  }

  /** What is broken: invariants of the stored sessions, requests that no provider would take, reports of the background. */
  faults(): string[] {
    const requests = this.model.requests.flatMap(({ messages }, index) =>
      requestFaults(messages).map((fault) => `request ${index}: ${fault}`),
    );
    return [...readDisk(this.dataDir).sessions.flatMap(sessionFaults), ...requests, ...this.reports];
  }

  async close(): Promise<void> {
    await this.runtime.close();
    rmSync(this.dataDir, { recursive: true });
  }

  private async prepare(runtime: EmbeddedRuntime): Promise<void> {
    runtime.feed.subscribe((event) => {
      this.events.push(event);
      for (const listener of this.waiting) listener(event);
    });
    await this.model.register(runtime.bus);
  }

  private log(level: string, message: string, context: object): void {
    if (level === 'warn' || level === 'error') this.reports.push(`${level}: ${message} ${JSON.stringify(context)}`);
  }
}

/** What a conversation looks like: `user: hello`, `assistant: hi [c1]`, `c1 ok: text`, `c1 failed(policy_denied): text`, `(notice)`. */
export function lines(entries: readonly DiskEntry[]): string[] {
  return entries.map(({ message, custom }) => {
    if (message === null) return `(${custom?.type})`;
    if (message.role === 'function_result') return resultLine(message);
    const calls = message.content.flatMap((block) => (block.type === 'function_call' ? [`[${block.id}]`] : []));
    return `${message.role}: ${[textOf(message.content), ...calls].filter((part) => part !== '').join(' ')}`;
  });
}

function resultLine(message: FunctionResultMessage): string {
  const { details } = message;
  const code =
    typeof details === 'object' && details !== null && !Array.isArray(details) && typeof details['error'] === 'string'
      ? `(${details['error']})`
      : '';
  return `${message.function_call_id} ${message.is_error ? 'failed' : 'ok'}${code}: ${textOf(message.content)}`;
}

/** The one result of a session's call. */
export function resultOf(session: DiskSession, callId: string): FunctionResultMessage {
  const result = resultsOf(session.entries).get(callId);
  if (result === undefined) throw new Error(`call ${callId} has no result: ${lines(session.entries).join(' | ')}`);
  return result;
}

/** A promise with its ends in hand. */
export function gate<T = void>(): { promise: Promise<T>; open: (value: T) => void } {
  let open: (value: T) => void = () => undefined;
  const promise = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}
