/** A process whose event loop stands still within a turn, for longer than its lease lasts. Argument: a `BlockedPlan`. */
import { appendFileSync, existsSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { openRuntime } from '#libs/local';
import { openJobs, openTurns } from '../support/disk.js';
import { agentCall, ScriptedModel, text } from '../support/scripted-model.js';

export interface BlockedPlan {
  dataDir: string;
  /** Gets a line for each call of the function. With `job` the calls are three jobs of one group. */
  counts: string;
  where: 'call' | 'generation' | 'job';
  leaseMs: number;
  /** How long it stands still, in ms; or until this file is there. */
  block: number | string;
  /** The Redis by which it shares the folder as a worker; otherwise it runs only what it sends. */
  redisUrl?: string;
}
/** What the process tells, one JSON line each. */
export type BlockedLine = { type: 'blocking' } | { type: 'awake' } | { type: 'left'; generations: number };

const { dataDir, counts, where, leaseMs, block: blocked, redisUrl } = JSON.parse(process.argv[2] ?? '{}') as BlockedPlan;
const tell = (line: BlockedLine): void => {
  writeSync(1, `${JSON.stringify(line)}\n`);
};

function block(): void {
  tell({ type: 'blocking' });
  const wait = (ms: number): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  if (typeof blocked === 'number') wait(blocked);
  else while (!existsSync(blocked)) wait(20);
  tell({ type: 'awake' });
}

const model = new ScriptedModel();
model.fallback = ({ messages }) => {
  if (where === 'generation') block();
  return {
    content: messages.length === 1 && where === 'call' ? [agentCall('c1', 'probe::block')] : [text('The blocked process answers.')],
  };
};
const runtime = await openRuntime({
  dataDir,
  role: redisUrl === undefined ? 'client' : 'worker',
  leaseMs,
  redisUrl,
  prepare: async ({ bus }) => {
    await model.register(bus);
    bus.registerFunction({ id: 'probe::block' }, () => {
      appendFileSync(counts, '{}\n');
      block();
      return 'called by the blocked process';
    });
  },
  log: (level, message, context) => {
    if (level === 'error' || level === 'warn') process.stderr.write(`${level}: ${message} ${JSON.stringify(context)}\n`);
  },
});
if (where === 'job') {
  const config = { type: 'fifo', message_group_field: 'g' };
  await runtime.bus.trigger({ function_id: 'queue::define', payload: { queue: 'q', config } });
  const jobs = [0, 1, 2].map((n) =>
    runtime.bus.trigger({ function_id: 'probe::block', payload: { g: 'a', n }, action: { type: 'enqueue', queue: 'q' } }),
  );
  await Promise.all(jobs);
  while (openJobs(dataDir) > 0) await sleep(20);
}
const payload = {
  session_id: 's_blocked',
  message: 'go',
  model: 'scripted-1',
  provider: 'scripted',
  options: { functions: { allow: ['probe::*'] } },
};
if (where !== 'job') await runtime.bus.trigger({ function_id: 'harness::send', payload });
while (openTurns(dataDir).length > 0) await sleep(20);
await sleep(100); // time for a late write, if there is one
await runtime.close();
tell({ type: 'left', generations: model.requests.length });
