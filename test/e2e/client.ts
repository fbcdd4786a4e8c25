/** A process that shares a data folder with others: sends its messages, runs the turns that it starts, and leaves when nothing is left to do. Argument: a `ClientPlan`. */

import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SendResponse, StatusReport } from '#libs/contracts';
import { type EmbeddedRuntime, openRuntime } from '#libs/local';
import { reply } from '../crash/model.js';
import { readDisk } from '../support/disk.js';
import { ScriptedModel } from '../support/scripted-model.js';

/** A message to send; `wait`: until its turn is over, before the lane goes on. */
export interface ClientSend {
  session_id: string;
  text: string;
  wait: boolean;
}
/** Each lane sends one message after the other; the lanes run side by side. */
export interface ClientPlan {
  dataDir: string;
  lanes: ClientSend[][];
}
/** What a client tells, one JSON line each. */
export type ClientLine =
  | { type: 'ready' }
  | { type: 'acked'; session_id: string; text: string; turn_id: string; merged: boolean }
  | { type: 'done'; completed: number };

const plan = JSON.parse(process.argv[2] ?? '{}') as ClientPlan;
const tell = (line: ClientLine): void => {
  writeSync(1, `${JSON.stringify(line)}\n`);
};

async function main(): Promise<void> {
  const { dataDir, lanes } = plan;
  const runtime = await openRuntime({
    dataDir,
    role: 'client',
    prepare,
    log: (level, message, context) => complain(level, message, context),
  });
  let completed = 0;
  runtime.feed.subscribe((event) => {
    if (event.type === 'turn_finished' && event.status === 'completed') completed += 1;
  });
  tell({ type: 'ready' });
  await once(process.stdin, 'data'); // all begin at once
  await Promise.all(lanes.map((lane) => run(runtime, lane)));
  while (readDisk(dataDir).sessions.some(({ turn, parked }) => (turn !== null && turn.job_step !== null) || parked.length > 0))
    await sleep(50);
  await runtime.close();
  tell({ type: 'done', completed });
  process.stdin.destroy();
}

async function prepare({ bus }: EmbeddedRuntime): Promise<void> {
  const model = new ScriptedModel();
  model.fallback = (request) => reply(request, bus, plan.dataDir);
  await model.register(bus, 'scripted', 'none');
  bus.registerFunction({ id: 'probe::count' }, () => 'counted');
}

async function run({ bus }: EmbeddedRuntime, lane: readonly ClientSend[]): Promise<void> {
  for (const { session_id, text, wait } of lane) {
    const payload = {
      session_id,
      message: text,
      model: 'scripted-1',
      provider: 'scripted',
      options: { functions: { allow: ['probe::*'] } },
    };
    const { turn_id, merged } = await bus.trigger<SendResponse>({ function_id: 'harness::send', payload });
    tell({ type: 'acked', session_id, text, turn_id, merged: merged === true });
    for (let waiting = wait; waiting; ) {
      const report = await bus.trigger<StatusReport | null>({ function_id: 'harness::status', payload: { session_id } });
      waiting = report?.turn_id === turn_id && report.status === 'running';
      if (waiting) await sleep(5);
    }
  }
}

function complain(level: string, message: string, context: object): void {
  if (level === 'error' || level === 'warn') process.stderr.write(`${level}: ${message} ${JSON.stringify(context)}\n`);
}

await main();
