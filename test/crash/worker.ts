/** One life of a worker process: opens the runtime, sends what it is told to, and ends when every turn is over. Argument: a `WorkerPlan`. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type EmbeddedRuntime, openRuntime } from '#libs/local';
import type { TurnRecord } from '#libs/turn';
import { openJobs, openTurns } from '../support/disk.js';
import { ScriptedModel } from '../support/scripted-model.js';
import { load } from './load.js';
import { reply } from './model.js';
import { gates, probes, watchEvents } from './probes.js';
import type { WorkerPlan } from './protocol.js';
import { Sender } from './sender.js';

const plan = JSON.parse(process.argv.at(-1) ?? '{}') as WorkerPlan;
const { dataDir } = plan;

async function main(): Promise<void> {
  let sender: Sender | undefined;
  const runtime = await openRuntime({
    dataDir,
    role: plan.role,
    leaseMs: plan.leaseMs,
    redisUrl: plan.redisUrl,
    prepare: async (opened) => {
      sender = new Sender(opened.bus);
      await prepare(opened, sender);
      sender.tell({ type: 'opened' });
    },
    log: (level, message, context) => {
      if (level === 'error' || level === 'warn') process.stderr.write(`${level}: ${message} ${JSON.stringify(context)}\n`);
    },
  });
  if (sender === undefined) throw new Error('the runtime is open, but was not prepared');
  sender.tell({ type: 'ready', since_start_ms: performance.now() });
  if (plan.load !== undefined) await load(sender, dataDir, plan.load);
  for (const send of plan.sends) await sender.send(send);
  for (let open = unfinished(); open.length > 0 || openJobs(dataDir) > 0; open = unfinished()) {
    for (const record of open) await sender.release(record);
    await sleep(5);
  }
  await runtime.close();
  sender.tell({ type: 'idle' });
}

/** The turns that this process has to finish. */
const unfinished = (): TurnRecord[] =>
  openTurns(dataDir).filter((record) => plan.role === 'worker' || plan.sends.some((send) => send.session_id === record.session_id));

/** Registers the model, the probes and the bindings; all of it before a step of an earlier life goes on. */
async function prepare(runtime: EmbeddedRuntime, sender: Sender): Promise<void> {
  const { bus, feed } = runtime;
  feed.subscribe((event) => {
    if (event.type === 'turn_finished') sender.ended(event.session_id);
  });
  const model = new ScriptedModel();
  model.fallback = (request) => reply(request, bus, dataDir);
  await model.register(bus, 'scripted', 'none');
  probes(runtime, sender);
  gates(runtime);
  watchEvents(runtime);
}

// No top-level await: the bundle of this file is a script.
main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
});
