import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import type { FunctionResolveResponse, SendResponse } from '#libs/contracts';
import { type EmbeddedRuntime, openRuntime } from '#libs/local';
import { agentCall, ScriptedModel, text } from '../support/scripted-model.js';

/** Sends and releases that are under way at once. */
const AT_ONCE = 200;
/** How long nothing may happen before a crowd counts as stuck, in ms. */
const STUCK_MS = 30_000;

export interface Parked {
  session_id: string;
  turn_id: string;
}

/**
 * A runtime with a model whose turns each call `probe::held`, which a hook holds, and go on when it is released. A session
 * whose message is `family` also starts a child and calls `probe::work`.
 */
export class Crowd {
  /** Calls that reached the functions. */
  readonly called = { held: 0, work: 0 };
  /** Turns that ended as they should, and those that did not. */
  readonly ended = { completed: 0, otherwise: 0 };
  readonly reports: string[] = [];
  private runtime!: EmbeddedRuntime;
  private reader: Sqlite.Database | undefined;
  private sent = 0;

  private constructor(private readonly dataDir: string) {}

  static async open(concurrency: number): Promise<Crowd> {
    const crowd = new Crowd(mkdtempSync(join(tmpdir(), 'harness-load-')));
    mkdirSync(join(crowd.dataDir, 'config'));
    writeFileSync(join(crowd.dataDir, 'config', 'harness.yaml'), `concurrency: ${concurrency}\n`);
    crowd.runtime = await openRuntime({
      dataDir: crowd.dataDir,
      role: 'client',
      prepare: (runtime) => crowd.prepare(runtime),
      log: (level, message, context) => {
        if (level === 'warn' || level === 'error') crowd.reports.push(`${message} ${JSON.stringify(context)}`);
      },
    });
    return crowd;
  }

  /** Sends `message` to as many new sessions, and waits until each of them waits for its held call. */
  async park(count: number, message: 'alone' | 'family'): Promise<Parked[]> {
    const before = this.turns('awaiting_functions');
    const parked: Parked[] = [];
    await this.many(count, async () => {
      this.sent += 1;
      const payload = {
        session_id: `${message}-${this.sent}`,
        message,
        model: 'crowd-1',
        provider: 'crowd',
        options: { functions: { allow: ['*'] } },
      };
      const { session_id, turn_id } = await this.call<SendResponse>('harness::send', payload);
      parked.push({ session_id, turn_id });
    });
    await this.until(
      () => this.turns('awaiting_functions') === before + count,
      () => `${this.turns('awaiting_functions') - before} of ${count} turns are parked`,
    );
    return parked;
  }

  /** Releases the held calls, and waits until no turn is live. */
  async release(parked: readonly Parked[]): Promise<void> {
    await this.many(parked.length, async (index) => {
      const { session_id, turn_id } = parked[index] as Parked;
      const payload = { session_id, turn_id, function_call_id: 'held', action: 'execute' };
      const { resolved } = await this.call<FunctionResolveResponse>('harness::function::resolve', payload);
      if (!resolved) throw new Error(`the call of ${session_id} could not be released`);
    });
    await this.until(
      () => this.turns('running') + this.turns('awaiting_functions') === 0,
      () => `${this.ended.completed} turns completed`,
    );
  }

  /** A turn that waits for nothing; resolves with the ms that it took. */
  async plainTurn(): Promise<number> {
    const before = this.ended.completed;
    const started = performance.now();
    await this.call('harness::send', { message: 'plain', model: 'crowd-1', provider: 'crowd' });
    await this.until(
      () => this.ended.completed === before + 1,
      () => 'the plain turn did not end',
    );
    return performance.now() - started;
  }

  /** What the store says of all turns: how many there are by status, and how many calls of the transcripts have no single result. */
  tally(): { statuses: { [status: string]: number }; unanswered: number } {
    return this.read((db) => {
      const rows = db.prepare('SELECT status, count(*) AS count FROM turns GROUP BY status').all() as { status: string; count: number }[];
      const calls = db.prepare(
        `SELECT count(*) AS count FROM entries, json_each(entries.body, '$.content') AS block WHERE entries.role = 'assistant' AND block.value ->> 'type' = 'function_call'`,
      );
      const results = db.prepare(
        `SELECT count(*) AS count, count(DISTINCT sid || ' ' || (body ->> 'function_call_id')) AS answered FROM entries WHERE role = 'function_result'`,
      );
      const { count } = calls.get() as { count: number };
      const { count: all, answered } = results.get() as { count: number; answered: number };
      return {
        statuses: Object.fromEntries(rows.map((row) => [row.status, row.count])),
        unanswered: Math.abs(count - answered) + (all - answered),
      };
    });
  }

  async close(): Promise<void> {
    this.reader?.close();
    await this.runtime.close();
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  private async prepare(runtime: EmbeddedRuntime): Promise<void> {
    const { bus } = runtime;
    runtime.feed.subscribe((event) => {
      if (event.type === 'turn_finished') this.ended[event.status === 'completed' ? 'completed' : 'otherwise'] += 1;
    });
    const model = new ScriptedModel();
    model.fallback = ({ messages }) => {
      const last = messages.at(-1);
      const said = last?.role === 'user' && last.content[0]?.type === 'text' ? last.content[0].text : '';
      const held = agentCall('held', 'probe::held');
      if (said === 'alone') return { content: [held] };
      if (said === 'family')
        return { content: [held, agentCall('child', 'harness::spawn', { task: 'plain' }), agentCall('work', 'probe::work')] };
      return { content: [text('done')] };
    };
    await model.register(bus, 'crowd', 'none');
    bus.registerFunction({ id: 'probe::held' }, () => this.count('held'));
    bus.registerFunction({ id: 'probe::work' }, () => this.count('work'));
    bus.registerFunction({ id: 'gate::hold' }, () => ({ decision: 'hold' }));
    bus.registerTrigger({ type: 'harness::hook::pre-trigger', function_id: 'gate::hold', config: { functions: ['probe::held'] } });
  }

  private count(what: 'held' | 'work'): { n: number } {
    this.called[what] += 1;
    return { n: this.called[what] };
  }

  private call<T>(function_id: string, payload: unknown): Promise<T> {
    return this.runtime.bus.trigger<T>({ function_id, payload });
  }

  private turns(status: 'running' | 'awaiting_functions'): number {
    return this.read((db) => (db.prepare('SELECT count(*) AS count FROM turns WHERE status = ?').get(status) as { count: number }).count);
  }

  /** Reads the store as another process would. */
  private read<T>(query: (db: Sqlite.Database) => T): T {
    this.reader ??= new Sqlite(join(this.dataDir, 'harness.db'), { readonly: true, timeout: 5_000 });
    return query(this.reader);
  }

  private async many(count: number, work: (index: number) => Promise<void>): Promise<void> {
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < count) {
        const index = next;
        next += 1;
        await work(index);
      }
    };
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count) }, worker));
  }

  private async until(isSo: () => boolean, state: () => string): Promise<void> {
    let last = '';
    let changed = Date.now();
    while (!isSo()) {
      const now = state();
      if (now !== last) [last, changed] = [now, Date.now()];
      if (Date.now() - changed > STUCK_MS) throw new Error(`stuck: ${now}, ${this.ended.otherwise} ended otherwise`);
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  }
}
