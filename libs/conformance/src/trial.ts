import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Entry,
  errorCode,
  errorMessage,
  type FunctionResultMessage,
  type HookInput,
  type HookOutput,
  type HookPoint,
  type HookTriggerConfig,
  hookTriggerType,
  type JsonValue,
  type MessageItem,
  type SendRequest,
  type SendResponse,
  type StatusReport,
  type TurnStatus,
} from '#libs/contracts';
import type { Bus, Registration } from '#libs/iii';
import { Finding, holds, shown } from './expect.js';
import type { Script } from './model.js';

/** How often something that is waited for is looked at, in ms. */
const LOOK_MS = 15;

/** A function of the run, with what it was called with. */
export interface Heard<T = unknown> {
  id: string;
  payloads: T[];
  metadata: (JsonValue | undefined)[];
}

export interface TrialOptions {
  /** What begins the ids of everything that the scenario makes. */
  name: string;
  /** How long the scenario may wait in all, in ms. */
  limitMs: number;
  signal?: AbortSignal | undefined;
}

/** What one scenario has in hand: a model that it scripts, and functions, hooks and sessions of its own that are gone after it. */
export class Trial {
  private readonly registrations: Registration[] = [];
  private readonly bindings: Registration[] = [];
  private readonly sessions = new Set<string>();
  private deadline: number;
  private isEnding = false;

  constructor(
    readonly bus: Bus,
    readonly model: Script,
    private readonly options: TrialOptions,
  ) {
    this.deadline = Date.now() + options.limitMs;
  }

  call<T = unknown>(function_id: string, payload: unknown): Promise<T> {
    return this.bus.trigger<T>({ function_id, payload, timeoutMs: this.options.limitMs });
  }

  /** The error of a call that must be refused. */
  async refusal(function_id: string, payload: unknown): Promise<{ code: string | undefined; message: string }> {
    const outcome: unknown = await this.call(function_id, payload).then(
      (answer) => ({ answer }),
      (error: unknown) => error,
    );
    if (outcome instanceof Error) return { code: errorCode(outcome), message: errorMessage(outcome) };
    throw new Finding(`${function_id} accepts ${shown(payload)} and answers ${shown(outcome)}`);
  }

  /** The id of a session of this scenario, which the first message makes. */
  session(): string {
    const id = `${this.options.name}-s${this.sessions.size}`;
    this.sessions.add(id);
    return id;
  }

  /** Counts a session among those of this scenario, which are gone after it. */
  owns(session_id: string): void {
    this.sessions.add(session_id);
  }

  /** Sends to the scenario's model, with every function of the run allowed unless told otherwise. */
  async send(message: SendRequest['message'], over: Partial<SendRequest> = {}): Promise<SendResponse> {
    const sent = await this.call<SendResponse>('harness::send', {
      message,
      model: this.model.model,
      provider: this.model.provider,
      options: this.allowing(`${this.options.name}::*`),
      ...over,
      session_id: over.session_id ?? this.session(),
    });
    this.owns(sent.session_id);
    return sent;
  }

  /** Options that allow these functions. */
  allowing(...allow: string[]): NonNullable<SendRequest['options']> {
    return { functions: { allow } };
  }

  status(session_id: string): Promise<StatusReport | null> {
    return this.call('harness::status', { session_id });
  }

  /** Waits until the session's turn has this status. Throws a `Finding` as soon as it has ended otherwise. */
  async until(session_id: string, wanted: TurnStatus): Promise<StatusReport> {
    return await this.reached(session_id, `the turn ${wanted}`, (report) => {
      if (report.status === wanted) return true;
      holds(!isOver(report), `the turn is ${report.status}, not ${wanted}: ${shown(report)}`);
      return false;
    });
  }

  /** Waits for the end of the session's turn; what it ended as is for the scenario to judge. */
  async over(session_id: string): Promise<StatusReport> {
    return await this.reached(session_id, 'the end of the turn', isOver);
  }

  /** Sends and waits for a turn that must complete. */
  async turn(message: SendRequest['message'], over: Partial<SendRequest> = {}): Promise<SendResponse & { report: StatusReport }> {
    const sent = await this.send(message, over);
    const report = await this.over(sent.session_id);
    holds(report.status === 'completed', `the turn is ${report.status}, not completed: ${shown(report)}`);
    return { ...sent, report };
  }

  /** Waits until something holds. Throws a `Finding` when it does not in the time of the scenario. */
  async becomes(what: string, isIt: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await isIt())) await this.wait(what, 'nothing');
  }

  /** Waits a little for something, which is `instead` now. */
  private async wait(what: string, instead: string): Promise<void> {
    if (!this.isEnding) this.options.signal?.throwIfAborted();
    if (Date.now() > this.deadline) throw new Finding(`${what} did not come in ${this.options.limitMs} ms; there is ${instead}`);
    await sleep(LOOK_MS);
  }

  /** The stored messages of a session, oldest first. */
  async messages(session_id: string): Promise<MessageItem[]> {
    return (await this.call<{ messages: MessageItem[] }>('session::messages', { session_id, limit: 500 })).messages;
  }

  async results(session_id: string): Promise<FunctionResultMessage[]> {
    return (await this.messages(session_id)).flatMap(({ message }) => (message?.role === 'function_result' ? [message] : []));
  }

  async entry(session_id: string, entry_id: string): Promise<Entry | null> {
    return (await this.call<{ entry: Entry } | null>('session::get-message', { session_id, entry_id }))?.entry ?? null;
  }

  /** Registers a function of the run, which models may be allowed by `send`, and waits until it can be called. */
  async function(
    name: string,
    answer: (payload: never, metadata: JsonValue | undefined) => unknown = () => ({ ok: true }),
  ): Promise<Heard> {
    const heard: Heard = { id: `${this.options.name}::${name}`, payloads: [], metadata: [] };
    const definition = { id: heard.id, description: 'A function of the conformance run.', request_format: { type: 'object' } };
    this.registrations.push(
      this.bus.registerFunction(definition, (payload, { metadata }) => {
        heard.payloads.push(payload);
        heard.metadata.push(metadata);
        return answer(payload as never, metadata);
      }),
    );
    await this.becomes(`the registration of ${heard.id}`, async () => (await missing(this.bus, [heard.id])).length === 0);
    return heard;
  }

  /**
   * Binds a function to a hook point, for the sessions of this scenario: for others it lets everything pass. Unless told otherwise it
   * hears of calls of the run's functions only, and it is passed over when it fails.
   */
  async hook(point: HookPoint, decide: (input: HookInput) => HookOutput | null, config: HookTriggerConfig = {}): Promise<Heard<HookInput>> {
    const inputs: HookInput[] = [];
    const heard = await this.function(`${point}-${this.registrations.length}`, (input: HookInput) => {
      if (!this.sessions.has(input.session_id)) return null;
      inputs.push(input);
      return decide(input);
    });
    const functions = point.endsWith('_trigger') ? { functions: [`${this.options.name}::*`] } : {};
    await this.bind(hookTriggerType(point), heard.id, { on_error: 'fail_open', ...functions, ...config });
    return { ...heard, payloads: inputs };
  }

  /** Hears of events. */
  async events<T>(type: string, config: JsonValue): Promise<Heard<T>> {
    const heard = await this.function(`events-${this.registrations.length}`, () => null);
    await this.bind(type, heard.id, config);
    return heard as Heard<T>;
  }

  /** Binds a function of the scenario to a trigger type, and waits until that is known. */
  async bind(type: string, function_id: string, config: JsonValue | HookTriggerConfig): Promise<void> {
    const before = (await this.bound()).length;
    this.bindings.push(this.bus.registerTrigger({ type, function_id, config: config as JsonValue }));
    await this.becomes(`a binding to ${type}`, async () => (await this.bound()).length > before);
  }

  /** Takes back what the scenario made, also after the run was told to end. Throws where the harness does not let it. */
  async cleanUp(): Promise<void> {
    this.isEnding = true;
    this.deadline = Date.now() + this.options.limitMs;
    try {
      for (const binding of this.bindings) binding.unregister();
      for (const session of this.sessions) await this.remove(session);
      await this.becomes('the end of the bindings', async () => (await this.bound()).length === 0);
    } finally {
      for (const registration of this.registrations) registration.unregister();
    }
  }

  private async reached(session_id: string, what: string, isIt: (report: StatusReport) => boolean): Promise<StatusReport> {
    for (;;) {
      const report = await this.status(session_id);
      if (report !== null && isIt(report)) return report;
      await this.wait(what, shown(report));
    }
  }

  /** The bindings of this scenario, as the engine knows them. */
  private async bound(): Promise<{ function_id: string }[]> {
    const { registered_triggers } = await this.call<{ registered_triggers: { function_id: string }[] }>(
      'engine::registered-triggers::list',
      { search: this.options.name, include_internal: true },
    );
    return registered_triggers.filter(({ function_id }) => function_id.startsWith(`${this.options.name}::`));
  }

  /** Stops what runs in a session, and deletes it with those of its children. */
  private async remove(session_id: string): Promise<void> {
    const report = await this.status(session_id);
    if (report === null) return;
    if (!isOver(report)) await this.call('harness::stop', { session_id });
    for (const child of report.children) await this.remove(child.session_id);
    await this.becomes(`the end of the turn of ${session_id}`, async () => {
      const now = await this.status(session_id);
      return now === null || isOver(now);
    });
    if ((await missing(this.bus, ['session::delete'])).length === 0) await this.call('session::delete', { session_id });
  }
}

const isOver = ({ status }: StatusReport): boolean => status === 'completed' || status === 'cancelled' || status === 'failed';

/** Those of these functions that are not there. */
export async function missing(bus: Bus, function_ids: readonly string[]): Promise<string[]> {
  if (function_ids.length === 0) return [];
  const { functions } = await bus.trigger<{ functions: { function_id: string; error?: string }[] }>({
    function_id: 'engine::functions::info',
    payload: { function_ids },
  });
  return functions.filter(({ error }) => error !== undefined).map(({ function_id }) => function_id);
}
