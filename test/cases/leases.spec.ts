import { spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { textOf } from '#libs/contracts';
import { buildTools } from '../support/build-tools.js';
import { jsonLines } from '../support/disk.js';
import { resultOf } from '../support/lines.js';
import { text } from '../support/scripted-model.js';
import { held, says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';
import type { BlockedLine, BlockedPlan } from './blocked.js';

const MINUTE = 60_000;
const rigs: TurnRig[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const rig of rigs.splice(0).reverse()) await rig.close();
});

async function open(...options: Parameters<typeof TurnRig.open>): Promise<TurnRig> {
  const rig = await TurnRig.open(...options);
  rigs.push(rig);
  return rig;
}

describe('C04 a step that takes longer than a call or a lease lasts', () => {
  it('by four minutes is one generation, and no other process takes it over', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval', 'Date'] });
    const one = await open();
    const two = await open({ dataDir: one.dataDir, role: 'worker' });
    const deltas = Array.from({ length: 8 }, (_, n) => `minute ${n / 2} `);
    let begun: () => void = () => undefined;
    const streaming = new Promise<void>((resolve) => {
      begun = resolve;
    });
    one.model.plays(async (request, writer) => {
      begun();
      for (const delta of deltas) {
        await writer.send({ type: 'text_delta', delta });
        await new Promise((resolve) => setTimeout(resolve, MINUTE / 2));
      }
      await writer.send({
        type: 'done',
        message: {
          role: 'assistant',
          content: [text(deltas.join(''))],
          model: request.model,
          provider: 'scripted',
          stop_reason: 'end',
          timestamp: 1,
        },
      });
    });
    const { session_id, turn_id } = await one.send('tell me a long story');
    await streaming;
    for (let half = 0; half <= deltas.length; half += 1) await vi.advanceTimersByTimeAsync(MINUTE / 2);
    vi.useRealTimers();
    expect(await one.end(turn_id)).toMatchObject({ status: 'completed', steps: 1, result: deltas.join('') });
    expect([one.model.requests.length, two.model.requests.length]).toEqual([1, 0]);
    expect(one.disk(session_id).turn?.record.claims).toBe(0);
    expect([...one.faults(), ...two.faults()]).toEqual([]);
  }, 60_000);

  it('is kept alive also while nothing is written', async () => {
    const one = await open({ leaseMs: 200 });
    const two = await open({ dataDir: one.dataDir, role: 'worker', leaseMs: 200 });
    const quiet = held();
    one.model.plays(quiet.script);
    const { turn_id } = await one.send('think');
    await quiet.begun;
    await new Promise((resolve) => setTimeout(resolve, 1_300)); // the other process looks every 500 ms
    quiet.answer(text('Thought.'));
    expect(await one.end(turn_id)).toMatchObject({ status: 'completed', result: 'Thought.' });
    expect([one.model.requests.length, two.model.requests.length]).toEqual([1, 0]);
  });
});

describe('C41 a process that is blocked for longer than its lease', () => {
  let tools = '';
  beforeAll(async () => {
    tools = await buildTools();
  }, 60_000);

  /** Starts a process that blocks in its turn, and gives what it told when it has ended. */
  function start(plan: BlockedPlan): Promise<{ code: number | null; lines: BlockedLine[]; stderr: string }> {
    const child = spawn(process.execPath, [join(tools, 'test', 'cases', 'blocked.js'), JSON.stringify(plan)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const lines: BlockedLine[] = [];
    let stderr = '';
    createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line) as BlockedLine));
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    return new Promise((resolve) => child.once('close', (code) => resolve({ code, lines, stderr })));
  }

  async function besideAnother(
    where: BlockedPlan['where'],
  ): Promise<{ other: TurnRig; ended: Awaited<ReturnType<typeof start>>; counts: string }> {
    const dataDir = mkdtempSync(join(tmpdir(), 'harness-blocked-'));
    const counts = join(dataDir, 'counts.jsonl');
    const other = await open({ dataDir, role: 'worker' });
    other.function('probe::block', () => 'called by the other process');
    other.model.fallback = () => says('The other process goes on.');
    const ended = await start({ dataDir, counts, where, leaseMs: 300, block: 2_000 });
    return { other, ended, counts };
  }

  it('in a call has it taken for unknown: it is made once, and what comes of it late changes nothing', async () => {
    const { other, ended, counts } = await besideAnother('call');
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.lines).toEqual([{ type: 'blocking' }, { type: 'awake' }, { type: 'left', generations: 1 }]);
    expect(jsonLines(counts)).toHaveLength(1);
    expect(other.model.requests).toHaveLength(1);
    const session = other.disk('s_blocked');
    expect(resultOf(session, 'c1')).toMatchObject({ is_error: true, details: { error: 'outcome_unknown' } });
    expect(session.turn?.record).toMatchObject({ status: 'completed', claims: 1, result: 'The other process goes on.' });
    expect(other.lines('s_blocked').filter((line) => line.startsWith('assistant:'))).toEqual([
      'assistant: [c1]',
      'assistant: The other process goes on.',
    ]);
    expect(other.faults()).toEqual([]);
  }, 30_000);

  it('in a generation writes nothing over the answer that another process has got meanwhile', async () => {
    const { other, ended, counts } = await besideAnother('generation');
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(jsonLines(counts)).toHaveLength(0);
    const session = other.disk('s_blocked');
    const said = session.entries.flatMap(({ message }) => (message?.role === 'assistant' ? [textOf(message.content)] : []));
    expect(said).toEqual(['The other process goes on.']);
    expect(session.turn?.record).toMatchObject({ status: 'completed', claims: 1 });
    expect(other.faults()).toEqual([]);
  }, 30_000);
});
