/** A process whose event loop stands still within a turn, for longer than its lease lasts. Argument: a `BlockedPlan`. */
import { appendFileSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { openRuntime } from '#libs/local';
import { openTurns } from '../support/disk.js';
import { agentCall, ScriptedModel, text } from '../support/scripted-model.js';

export interface BlockedPlan {
  dataDir: string;
  /** Gets a line for each call of the function. */
  counts: string;
  where: 'call' | 'generation';
  leaseMs: number;
  blockMs: number;
}
/** What the process tells, one JSON line each. */
export type BlockedLine = { type: 'blocking' } | { type: 'awake' } | { type: 'left'; generations: number };

const { dataDir, counts, where, leaseMs, blockMs } = JSON.parse(process.argv[2] ?? '{}') as BlockedPlan;
const tell = (line: BlockedLine): void => {
  writeSync(1, `${JSON.stringify(line)}\n`);
};

function block(): void {
  tell({ type: 'blocking' });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockMs);
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
  role: 'client',
  leaseMs,
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
const payload = {
  session_id: 's_blocked',
  message: 'go',
  model: 'scripted-1',
  provider: 'scripted',
  options: { functions: { allow: ['probe::*'] } },
};
await runtime.bus.trigger({ function_id: 'harness::send', payload });
while (openTurns(dataDir).length > 0) await sleep(20);
await sleep(100); // time for a late write, if there is one
await runtime.close();
tell({ type: 'left', generations: model.requests.length });
