import { mkdtempSync, rmSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Entry, FunctionResultMessage, JsonValue, SendRequest, SendResponse, StatusReport } from '#libs/contracts';
import { openRuntime, type EmbeddedRuntime, type RuntimeRole } from '#libs/local';
import type { FeedEvent } from '#libs/turn';
import { ScriptedModel } from './scripted-model.js';

type Finished = Extract<FeedEvent, { type: 'turn_finished' }>;

/** A runtime over a data folder of its own with the scripted model, and short ways to use it. */
export class TurnRig {
  readonly events: FeedEvent[] = [];
  private readonly finished = new Map<string, Finished>();
  private readonly waiting = new Map<string, ((event: Finished) => void)[]>();

  private constructor(
    readonly dataDir: string,
    readonly runtime: EmbeddedRuntime,
    readonly model: ScriptedModel,
  ) {
    runtime.feed.subscribe((event) => {
      this.events.push(event);
      if (event.type !== 'turn_finished') return;
      this.finished.set(event.turn_id, event);
      for (const tell of this.waiting.get(event.turn_id) ?? []) tell(event);
    });
  }

  /** Opens it; `config` are the fields of the `harness` entry, as YAML. */
  static async open(options: { model?: ScriptedModel; config?: string; dataDir?: string; role?: RuntimeRole; prepare?: (runtime: EmbeddedRuntime) => void } = {}): Promise<TurnRig> {
    const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'harness-rig-'));
    if (options.config !== undefined) {
      mkdirSync(join(dataDir, 'config'), { recursive: true });
      writeFileSync(join(dataDir, 'config', 'harness.yaml'), options.config);
    }
    const model = options.model ?? new ScriptedModel();
    const runtime = await openRuntime({
      dataDir,
      role: options.role ?? 'client',
      prepare: async (opened) => {
        await model.register(opened.bus);
        options.prepare?.(opened);
      },
    });
    return new TurnRig(dataDir, runtime, model);
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

  /** Sends with every function allowed, unless told otherwise. */
  send(message: SendRequest['message'], over: Partial<SendRequest> = {}): Promise<SendResponse> {
    return this.call<SendResponse>('harness::send', { message, model: 'scripted-1', provider: 'scripted', options: { functions: { allow: ['*'] } }, ...over });
  }

  /** The end of a turn. */
  end(turnId: string): Promise<Finished> {
    const known = this.finished.get(turnId);
    if (known !== undefined) return Promise.resolve(known);
    return new Promise((resolve) => this.waiting.set(turnId, [...(this.waiting.get(turnId) ?? []), resolve]));
  }

  /** Sends and waits for the end. */
  async turn(message: SendRequest['message'], over: Partial<SendRequest> = {}): Promise<Finished> {
    return await this.end((await this.send(message, over)).turn_id);
  }

  status(session_id: string): Promise<StatusReport | null> {
    return this.call('harness::status', { session_id });
  }

  /** Waits until the status of a session's turn is `wanted`; fails with what it is after two seconds. */
  async until(session_id: string, wanted: StatusReport['status']): Promise<StatusReport> {
    const deadline = Date.now() + 5_000;
    for (;;) {
      const report = await this.status(session_id);
      if (report?.status === wanted) return report;
      if (Date.now() > deadline) throw new Error(`the turn is ${JSON.stringify(report)}, not ${wanted}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async entries(session_id: string): Promise<Entry[]> {
    const { messages } = await this.call<{ messages: { entry_id: string }[] }>('session::messages', { session_id, limit: 500, include_custom: true });
    const found = await Promise.all(messages.map(({ entry_id }) => this.call<{ entry: Entry } | null>('session::get-message', { session_id, entry_id })));
    return found.flatMap((row) => (row === null ? [] : [row.entry]));
  }

  async results(session_id: string): Promise<FunctionResultMessage[]> {
    return (await this.entries(session_id)).flatMap((entry) => (entry.kind === 'message' && entry.message.role === 'function_result' ? [entry.message] : []));
  }

  async close(keep = false): Promise<void> {
    await this.runtime.close();
    if (!keep) rmSync(this.dataDir, { recursive: true, force: true });
  }
}
