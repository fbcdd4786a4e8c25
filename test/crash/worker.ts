/** One life of a worker process: opens the runtime, sends what it is told to, and ends when every turn is over. Argument: a `WorkerPlan`. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SendResponse, StatusReport, StopResponse } from '#libs/contracts';
import type { Bus, InvocationContext } from '#libs/iii';
import { type EmbeddedRuntime, openRuntime } from '#libs/local';
import type { TurnRecord } from '#libs/turn';
import { openTurns } from '../support/disk.js';
import { ScriptedModel } from '../support/scripted-model.js';
import { reply } from './model.js';
import { type CountLine, countsFile, type EventLine, eventsFile, type PlannedSend, type WorkerLine, type WorkerPlan } from './protocol.js';
import { seeded } from './random.js';

const plan = JSON.parse(process.argv[2] ?? '{}') as WorkerPlan;
const { dataDir } = plan;

const tell = (line: WorkerLine): void => {
  writeSync(1, `${JSON.stringify(line)}\n`);
};

/** Appends a line to a file and waits until it is on disk. */
function append(path: string, line: object): void {
  const file = openSync(path, 'a');
  writeSync(file, `${JSON.stringify(line)}\n`);
  fsyncSync(file);
  closeSync(file);
}

/** Tells when the turn of a session is over. */
class Turns {
  private readonly waiting = new Map<string, (() => void)[]>();

  constructor(private readonly bus: Bus) {}

  ended(sessionId: string): void {
    for (const resolve of this.waiting.get(sessionId) ?? []) resolve();
    this.waiting.delete(sessionId);
  }

  /** Waits until no turn of the session is live. */
  async over(sessionId: string): Promise<void> {
    for (;;) {
      const told = new Promise<void>((resolve) => this.waiting.set(sessionId, [...(this.waiting.get(sessionId) ?? []), resolve]));
      const report = await this.bus.trigger<StatusReport | null>({ function_id: 'harness::status', payload: { session_id: sessionId } });
      if (report === null || ['completed', 'cancelled', 'failed'].includes(report.status)) return;
      await told;
    }
  }
}

async function main(): Promise<void> {
  let turns: Turns | undefined;
  const runtime = await openRuntime({
    dataDir,
    role: plan.role,
    prepare: async (opened) => {
      turns = new Turns(opened.bus);
      await prepare(opened, turns);
    },
    log: (level, message, context) => {
      if (level === 'error' || level === 'warn') process.stderr.write(`${level}: ${message} ${JSON.stringify(context)}\n`);
    },
  });
  tell({ type: 'ready', since_start_ms: performance.now() });
  for (const send of plan.sends) await sendOne(runtime.bus, send);
  if (plan.load !== undefined) await load(runtime.bus, turns as Turns, plan.load);
  for (let open = unfinished(); open.length > 0; open = unfinished()) {
    for (const record of open) await release(runtime.bus, record);
    await sleep(10);
  }
  await runtime.close();
  tell({ type: 'idle' });
}

/** The turns that this process has to finish. */
const unfinished = (): TurnRecord[] =>
  openTurns(dataDir).filter((record) => plan.role === 'worker' || plan.sends.some((send) => send.session_id === record.session_id));

/** Lets the calls go on that the hook holds, as a person would who says yes. */
async function release(bus: Bus, { session_id, turn_id, calls }: TurnRecord): Promise<void> {
  for (const call of calls) {
    if (call.state !== 'pending' || call.held_by === undefined) continue;
    await bus.trigger({
      function_id: 'harness::function::resolve',
      payload: { session_id, turn_id, function_call_id: call.id, action: 'execute' },
    });
  }
}

async function sendOne(bus: Bus, send: PlannedSend): Promise<void> {
  tell({ type: 'sending', send });
  const answer = await bus.trigger<SendResponse>({
    function_id: 'harness::send',
    payload: {
      session_id: send.session_id,
      message: send.text,
      model: 'scripted-1',
      provider: 'scripted',
      idempotency_key: send.key,
      options: { functions: { allow: ['probe::*', 'harness::spawn'], deny: ['probe::secret'] } },
    },
  });
  tell({ type: 'acked', key: send.key, turn_id: answer.turn_id, merged: answer.merged === true });
}

/** Sends to some sessions at random until the process dies; half of the messages do not wait for the turn before them. */
async function load(bus: Bus, turns: Turns, { sessions, life, seed }: NonNullable<WorkerPlan['load']>): Promise<void> {
  const one = async (session: number): Promise<void> => {
    const random = seeded(seed * 1_000_003 + life * 101 + session);
    const session_id = `load-${session}`;
    for (let n = 0; n < 200; n += 1) {
      const kind = ['tools', 'text', 'slow', 'refused', 'throws', 'steer', 'stop', 'halt'][Math.floor(random() * 8)];
      await sendOne(bus, { session_id, text: `${kind} ${session_id} ${life}.${n}`, key: `k-${life}-${session}-${n}` });
      if (random() < 0.5) await turns.over(session_id);
      else await sleep(random() * 20);
    }
  };
  await Promise.all(Array.from({ length: sessions }, (_, session) => one(session)));
}

/** Registers the model, the probes and the bindings; all of it before a step of an earlier life goes on. */
async function prepare(runtime: EmbeddedRuntime, turns: Turns): Promise<void> {
  const { bus } = runtime;
  runtime.feed.subscribe((event) => {
    if (event.type === 'turn_finished') turns.ended(event.session_id);
  });
  const model = new ScriptedModel();
  model.fallback = (request) => reply(request, bus, dataDir);
  await model.register(bus, 'scripted', 'none');
  probes(runtime);
  for (const type of ['harness::turn-started', 'harness::turn-completed']) {
    const id = `watch::${type.split('::')[1]}`;
    bus.registerFunction({ id }, (payload) => {
      const { session_id, turn_id, status } = payload as EventLine;
      append(eventsFile(dataDir), { type, session_id, turn_id, status } satisfies EventLine);
    });
    bus.registerTrigger({ type, function_id: id, config: {} });
  }
}

function probes(runtime: EmbeddedRuntime): void {
  const { bus } = runtime;
  const probe = (name: string, then: (agent: CountLine) => unknown): void => {
    bus.registerFunction({ id: `probe::${name}` }, (payload, context) => {
      const line = counted(payload, context);
      append(countsFile(dataDir), line);
      return then(line);
    });
  };
  const forever = (): Promise<never> => new Promise(() => undefined);
  const stop = async (session_id: string): Promise<void> => {
    const { stopping } = await bus.trigger<StopResponse>({ function_id: 'harness::stop', payload: { session_id } });
    tell({ type: 'stop-acked', session_id, stopping });
  };
  probe('count', ({ call }) => ({ counted: call }));
  probe('secret', () => 'a secret');
  probe('fail', () => Promise.reject(new Error('probe/failed: this function always fails')));
  probe('steer', async ({ call, session_id }) => {
    await sendOne(bus, { session_id, text: `tools ${session_id} steered during ${call}`, key: `steer-${call}` });
    return 'steered';
  });
  probe('stop', async ({ session_id }) => {
    void stop(session_id);
    return await forever();
  });
  probe('hang', ({ session_id }) => {
    tell({ type: 'hanging', session_id });
    return forever();
  });
  probe('leave', () => {
    void runtime.close(20).then(() => process.exit(0));
    return forever();
  });
  probe('drop', async ({ call, session_id }) => {
    await sendOne(bus, { session_id, text: `text ${session_id} dropped during ${call}`, key: `drop-${call}` });
    void stop(session_id);
    return await forever();
  });
  probe('held', () => 'released');
  bus.registerFunction({ id: 'gate::hold' }, () => ({ decision: 'hold' }));
  bus.registerTrigger({ type: 'harness::hook::pre-trigger', function_id: 'gate::hold', config: { functions: ['probe::held'] } });
  bus.registerFunction({ id: 'probe::halt' }, async (payload) => {
    await sleep(30);
    await stop((payload as { session_id: string }).session_id);
  });
}

function counted(payload: unknown, context: InvocationContext): CountLine {
  const { agent } = context.metadata as { agent: { session_id: string; turn_id: string } };
  return { call: (payload as { call: string }).call, session_id: agent.session_id, turn_id: agent.turn_id, pid: process.pid };
}

await main();
