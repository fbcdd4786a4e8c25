import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { textOf } from '#libs/contracts';
import type { EmbeddedRuntime } from '#libs/local';
import type { BlockedLine, BlockedPlan } from '../cases/blocked.js';
import { buildTools } from '../support/build-tools.js';
import { jsonLines, openJobs } from '../support/disk.js';
import { resultOf } from '../support/lines.js';
import { hasRedis, RedisServer } from '../support/redis-server.js';
import { ScriptedModel } from '../support/scripted-model.js';
import { says } from '../support/scripts.js';
import type { TurnRig } from '../support/turn-rig.js';
import { JobLog } from './jobs.js';
import { Workers } from './workers.js';

/** Of the lease on what a worker does, and so of its locks in Redis. */
const LEASE_MS = 1_000;

/** A model that answers at once. */
function answering(): ScriptedModel {
  const model = new ScriptedModel();
  model.fallback = () => says('The other process goes on.');
  return model;
}

interface Other {
  /** Gets the other worker before it runs anything. */
  prepare?: (runtime: EmbeddedRuntime) => void;
  /** Resolves when it has done what the blocked one had begun. */
  done(other: TurnRig): Promise<unknown>;
}
interface Outcome {
  other: TurnRig;
  /** What the blocked process told, and how often its function was called. */
  lines: BlockedLine[];
  calls: number;
}

const turn: Other = { done: (other) => other.until('s_blocked', 'completed') };
/** What went wrong, but for locks that a busy machine loses. */
const faultsOf = (rig: TurnRig): string[] => rig.faults().filter((fault) => !/the queue in Redis/.test(fault));

describe.skipIf(!hasRedis)('C41 a worker that stands still for longer than its lease and locks (skipped without redis-server)', () => {
  let tools = '';
  beforeAll(async () => {
    tools = await buildTools();
  }, 120_000);

  /** Blocks a worker in its work until another one has done that. */
  async function besideAnother(where: BlockedPlan['where'], { prepare = () => undefined, done }: Other): Promise<Outcome> {
    const redis = await RedisServer.start();
    const workers = await Workers.open(0, redis);
    onTestFinished(async () => await workers.close());
    const [counts, block] = [join(workers.dataDir, 'counts.jsonl'), join(workers.dataDir, 'go-on')];
    const plan: BlockedPlan = { dataDir: workers.dataDir, counts, where, leaseMs: LEASE_MS, block, redisUrl: redis.url };
    const child = spawn(process.execPath, [join(tools, 'test', 'cases', 'blocked.js'), JSON.stringify(plan)]);
    onTestFinished(() => void child.kill('SIGKILL'));
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    const ended = new Promise((resolve) => child.once('close', resolve));
    const lines: BlockedLine[] = [];
    await new Promise<void>((resolve, reject) => {
      void ended.then(() => reject(new Error(`it ended before it was blocked: ${stderr}`)));
      createInterface({ input: child.stdout }).on('line', (line) => {
        lines.push(JSON.parse(line) as BlockedLine);
        resolve();
      });
    });
    const other = await workers.add({ model: answering, leaseMs: LEASE_MS, prepare });
    await done(other);
    writeFileSync(block, '');
    expect(await ended).toBe(0);
    return { other, lines, calls: jsonLines(counts).length };
  }

  it('in a call has it taken for unknown: it is made once, and what comes of it late changes nothing', async () => {
    const { other, lines, calls } = await besideAnother('call', turn);
    expect(lines).toEqual([{ type: 'blocking' }, { type: 'awake' }, { type: 'left', generations: 1 }]);
    expect([calls, other.model.requests.length]).toEqual([1, 1]);
    expect(resultOf(other.disk('s_blocked'), 'c1')).toMatchObject({ is_error: true, details: { error: 'outcome_unknown' } });
    expect(other.lines('s_blocked').filter((line) => line.startsWith('assistant:'))).toEqual([
      'assistant: [c1]',
      'assistant: The other process goes on.',
    ]);
    expect(faultsOf(other)).toEqual([]);
  }, 120_000);

  it('in a generation writes nothing over the answer that another process has got meanwhile', async () => {
    const { other, calls } = await besideAnother('generation', turn);
    expect(calls).toBe(0);
    const session = other.disk('s_blocked');
    const said = session.entries.flatMap(({ message }) => (message?.role === 'assistant' ? [textOf(message.content)] : []));
    expect(said).toEqual(['The other process goes on.']);
    expect(session.turn?.record).toMatchObject({ status: 'completed', result: 'The other process goes on.' });
    expect(faultsOf(other)).toEqual([]);
  }, 120_000);

  it('in a job leaves it and those behind it to another one, in order, and its late end changes nothing', async () => {
    const log = new JobLog();
    const { other, lines, calls } = await besideAnother('job', {
      prepare: (runtime) => log.register(runtime, 1, () => undefined, 'probe::block'),
      done: () => log.until(() => log.seen.length === 3),
    });
    expect(lines).toEqual([{ type: 'blocking' }, { type: 'awake' }, { type: 'left', generations: 0 }]);
    expect([calls, log.faults(3)]).toEqual([1, []]);
    expect(openJobs(other.dataDir)).toBe(0);
  }, 120_000);
});
