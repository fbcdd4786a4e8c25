import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type ContentBlock, callsOf, type MessageItem, type ProviderStreamRequest, type StatusReport, textOf } from '#libs/contracts';
import { connectSdk, type SdkBus } from '#libs/iii';
import { GenerationStream } from '../../libs/conformance/src/generations.js';
import { EngineServer } from './engine-server.js';
import { ServedWorker } from './served-worker.js';
import { startSessionWorker } from './session-worker.js';

export interface CampaignOptions {
  /** Deaths of the worker, of the engine, and of both at once. */
  kills: number;
  engineKills: number;
  bothKills?: number;
  store: 'sqlite' | 'engine';
  /** Sessions are kept by another worker, which does not die. */
  sessionsElsewhere?: boolean;
  seed: number;
  say: (line: string) => void;
}

export interface CampaignReport {
  kills: number;
  engineKills: number;
  turns: number;
  effects: number;
  /** Turns that were closed with a notice, since what was answered for was lost. */
  closed: number;
  /** The longest that open turns took to end after the last start, in ms. */
  longestEndMs: number;
  violations: string[];
}

/** Sessions that are talked to side by side, and calls of a turn. */
const SESSIONS = 6;
const CALLS = 2;
/** The longest time between two deaths, in ms; and how long turns may take to end after a restart. */
const LIFE_MS = 600;
const SETTLE_MS = 60_000;

const EFFECT = 'campaign::effect';
const PROVIDER = 'campaign';

/**
 * Talks to a worker of a real engine while the worker and the engine are killed at random moments, and then checks from outside that nothing
 * was lost, nothing was done twice, and every turn has ended.
 */
export async function campaign(options: CampaignOptions): Promise<CampaignReport> {
  const engine = await EngineServer.open();
  const folder = mkdtempSync(join(tmpdir(), 'harness-campaign-'));
  const worker = new ServedWorker(folder, {
    III_URL: engine.url,
    HARNESS_SIBLINGS: options.sessionsElsewhere === true ? '-sessions' : 'all',
    HARNESS_STORE: options.store,
    HARNESS_HTTP_PORT: 'off',
  });
  const sessionsFolder = mkdtempSync(join(tmpdir(), 'harness-campaign-sessions-'));
  const sessions = options.sessionsElsewhere === true ? await startSessionWorker(engine.url, sessionsFolder) : null;
  const bus = await connectSdk(engine.url, { name: `campaign:${process.pid}`, log: () => undefined });
  try {
    return await new Campaign(options, engine, worker, bus).run();
  } finally {
    await worker.end('SIGKILL');
    await bus.close();
    await sessions?.close();
    await engine.dispose();
    for (const each of [folder, sessionsFolder]) rmSync(each, { recursive: true, force: true });
  }
}

class Campaign {
  private readonly effects = new Map<string, number>();
  private readonly sent = new Map<string, Set<string>>();
  private readonly violations: string[] = [];
  private readonly random: () => number;
  private over = false;

  constructor(
    private readonly options: CampaignOptions,
    private readonly engine: EngineServer,
    private readonly worker: ServedWorker,
    private readonly bus: SdkBus,
  ) {
    this.random = generator(options.seed);
  }

  async run(): Promise<CampaignReport> {
    const { kills, engineKills, bothKills = 0, say } = this.options;
    this.registerPrograms();
    await this.worker.up();
    this.bus.registerFunction({ id: 'campaign::offer', description: 'Tells a router of the model, whenever there is one.' }, async () => {
      await this.offer();
      return null;
    });
    this.bus.registerTrigger({ type: 'router::ready', function_id: 'campaign::offer', config: {} });
    await this.offer();
    const talking = Array.from({ length: SESSIONS }, (_, index) => this.talk(`s_campaign_${index}`));
    const plan = this.shuffled([
      ...Array<'worker'>(kills).fill('worker'),
      ...Array<'engine'>(engineKills).fill('engine'),
      ...Array<'both'>(bothKills).fill('both'),
    ]);
    let done = 0;
    for (const victim of plan) {
      await delay(this.random() * LIFE_MS);
      if (victim === 'engine') await this.engine.kill();
      else if (victim === 'worker') await this.worker.end('SIGKILL');
      else await Promise.all([this.engine.kill(), this.worker.end('SIGKILL')]);
      if (victim !== 'worker') await this.engine.up();
      if (victim !== 'engine') await this.worker.up();
      await this.untilBack();
      done += 1;
      if (done % 25 === 0) say(`${done} of ${plan.length} deaths, ${this.sentCount} sends, ${this.effects.size} effects`);
    }
    this.over = true;
    await Promise.all(talking);
    const startedAt = Date.now();
    await this.settle();
    const longestEndMs = Date.now() - startedAt;
    const { turns, closed } = await this.check();
    return { kills, engineKills, turns, closed, effects: this.effects.size, longestEndMs, violations: this.violations };
  }

  /** A model that asks for one effect after the other, and the function that has the effect. */
  private registerPrograms(): void {
    this.bus.registerFunction({ id: EFFECT, description: 'Has an effect that is counted.' }, async (payload) => {
      const { key } = payload as { key: string };
      this.effects.set(key, (this.effects.get(key) ?? 0) + 1);
      await delay(this.random() * 40);
      return { key };
    });
    this.bus.registerFunction({ id: `provider::${PROVIDER}::stream`, description: 'The model of the campaign.' }, async (payload) => {
      const request = payload as ProviderStreamRequest;
      const writer = this.bus.openWriter(request.writer_ref);
      const stream = new GenerationStream(writer, PROVIDER, 'campaign');
      await stream.start();
      await stream.text('Thinking. ');
      await delay(this.random() * 60);
      await stream.done(nextCall(request));
      stream.close();
      return { ok: true };
    });
  }

  private async offer(): Promise<void> {
    const models = [{ id: 'campaign', provider: PROVIDER, context_window: 200_000, max_output_tokens: 8_000, supports_tools: true }];
    await this.bus.trigger({ function_id: 'router::provider::register', payload: { id: PROVIDER, display_name: 'Campaign', models } });
  }

  /** Sends messages to a session, one when the last one's turn has ended, each with a key and until it is accepted. */
  private async talk(session: string): Promise<void> {
    const sent = new Set<string>();
    this.sent.set(session, sent);
    while (!this.over) {
      const key = `k${randomUUID().replaceAll('-', '')}`;
      sent.add(key);
      const payload = {
        session_id: session,
        message: key,
        model: 'campaign',
        provider: PROVIDER,
        idempotency_key: key,
        options: { functions: { allow: [EFFECT] } },
      };
      while (!(await this.tried('harness::send', payload, () => true))) await delay(100);
      while (!this.over && !(await this.hasEnded(session))) await delay(50);
    }
  }

  private async hasEnded(session: string): Promise<boolean> {
    return await this.tried('harness::status', { session_id: session }, (report) => {
      const { status } = (report ?? {}) as Partial<StatusReport>;
      return status === 'completed' || status === 'failed' || status === 'cancelled';
    });
  }

  private async tried(function_id: string, payload: unknown, is: (answer: unknown) => boolean): Promise<boolean> {
    try {
      return is(await this.bus.trigger({ function_id, payload, timeoutMs: 5_000 }));
    } catch {
      return false; // the worker or the engine is away: it is asked again
    }
  }

  /** Waits until the worker answers again by itself. */
  private async untilBack(): Promise<void> {
    const until = Date.now() + SETTLE_MS;
    while (!(await this.tried('harness::status', { session_id: 's_campaign_0' }, () => true))) {
      if (Date.now() > until) throw new Error(`the worker does not come back after the engine:\n${this.worker.said}`);
      await delay(25);
    }
  }

  /** Waits until every turn has ended. */
  private async settle(): Promise<void> {
    const until = Date.now() + SETTLE_MS;
    for (const session of this.sent.keys()) {
      while (!(await this.hasEnded(session))) {
        if (Date.now() > until) {
          const report = await this.bus.trigger<unknown>({ function_id: 'harness::status', payload: { session_id: session } });
          this.violations.push(`${session} is wedged: ${JSON.stringify(report)}\n${this.worker.said.slice(-3_000)}`);
          break;
        }
        await delay(50);
      }
    }
  }

  private async check(): Promise<{ turns: number; closed: number }> {
    let turns = 0;
    let closed = 0;
    for (const [key, times] of this.effects) if (times > 1) this.violations.push(`the effect ${key} happened ${times} times`);
    for (const [session, keys] of this.sent) {
      const items = await this.transcript(session);
      const users = items.filter(({ message }) => message?.role === 'user').map(({ message }) => textOf(message?.content ?? []));
      turns += users.length;
      for (const key of keys) {
        const times = users.filter((text) => text === key).length;
        if (times !== 1) this.violations.push(`${session}: the message ${key} stands in the transcript ${times} times`);
      }
      const calls = items.flatMap(({ message }) => (message?.role === 'assistant' ? callsOf(message.content) : []));
      const results = items.flatMap(({ message }) => (message?.role === 'function_result' ? [message.function_call_id] : []));
      for (const { id } of calls) {
        const answers = results.filter((each) => each === id).length;
        if (answers !== 1) this.violations.push(`${session}: the call ${id} has ${answers} results`);
      }
      closed += items.filter(({ custom }) => isNotice(custom)).length;
    }
    return { turns, closed };
  }

  private async transcript(session: string): Promise<MessageItem[]> {
    const items: MessageItem[] = [];
    let cursor: string | null = null;
    do {
      const payload: object = { session_id: session, limit: 500, include_custom: true, ...(cursor === null ? {} : { cursor }) };
      const page: { messages: MessageItem[]; next_cursor?: string | null } = await this.bus.trigger({
        function_id: 'session::messages',
        payload,
      });
      items.push(...page.messages);
      cursor = page.next_cursor ?? null;
    } while (cursor !== null);
    return items;
  }

  private get sentCount(): number {
    return [...this.sent.values()].reduce((sum, keys) => sum + keys.size, 0);
  }

  private shuffled<T>(list: T[]): T[] {
    return list
      .map((item) => ({ item, at: this.random() }))
      .sort((a, b) => a.at - b.at)
      .map(({ item }) => item);
  }
}

/** An entry that says that the engine lost what it had answered for. */
const isNotice = (custom: MessageItem['custom']): boolean =>
  (custom?.data as { code?: unknown } | null | undefined)?.code === 'harness.state_lost';

/** The next effect that the last user message wants, whose keys say which message and which call they belong to; none when all are there. */
function nextCall({ messages }: ProviderStreamRequest): ContentBlock[] {
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const key = textOf(messages[at]?.content ?? []);
  const done = messages.slice(at + 1).filter(({ role }) => role === 'function_result').length;
  if (done >= CALLS) return [];
  return [
    {
      type: 'function_call',
      id: `fc_${key}_${done}`,
      function_id: 'agent_trigger',
      arguments: { function: EFFECT, description: 'has an effect', payload: { key: `${key}_${done}` } },
    },
  ];
}

/** Random numbers from 0 to 1 that a seed repeats. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
