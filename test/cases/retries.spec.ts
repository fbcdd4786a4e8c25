import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { DATABASE_FILE } from '#libs/local';
import type { VendorAnswer, VendorRequest } from '../support/vendor-server.js';
import { MODELS, type VendorModel, VendorRig } from './vendors.js';

let bench: VendorRig;
afterEach(() => bench.close());

const [anthropic] = MODELS as [VendorModel];
const to = { provider: anthropic.provider, model: anthropic.model };
const refusal = (status: number, type: string, headers: { [name: string]: string } = {}): VendorAnswer => ({
  status,
  headers,
  body: { type: 'error', error: { type, message: `${type} of the test` } },
});

it('C14 a vendor that is away twice is asked three times, and one that refuses is asked once; no stack trace is stored', async () => {
  bench = await VendorRig.open();
  bench.answers(refusal(503, 'api_error'), refusal(503, 'api_error'), { events: anthropic.events([{ text: 'Here I am.' }]) });
  expect(await bench.rig.turn('hello', to)).toMatchObject({ status: 'completed', result: 'Here I am.', steps: 1 });
  expect(bench.server.requests).toHaveLength(3);
  bench.answers(refusal(400, 'invalid_request_error'));
  expect(await bench.rig.turn('hello', to)).toMatchObject({
    status: 'failed',
    result_error: expect.stringContaining('invalid_request_error of the test') as string,
  });
  expect(bench.server.requests).toHaveLength(4);
  bench.rig.function('probe::throws', () => {
    throw new Error('broken on purpose');
  });
  const call = { call: 'agent_trigger', id: 'call_1', args: { function: 'probe::throws', description: 'tries', payload: {} } };
  bench.answers({ events: anthropic.events([call]) }, { events: anthropic.events([{ text: 'It is broken.' }]) });
  expect(await bench.rig.turn('try', to)).toMatchObject({ status: 'completed', calls: 1 });
  expect(stored()).not.toMatch(/\.[cm]?[jt]s:\d+:\d+/);
});

it('C22 five children at once outlive a limit: each waits as long as it is told, and is asked once more', async () => {
  bench = await VendorRig.open();
  const asked = new Map<string, number[]>();
  const answer = ({ body }: VendorRequest): VendorAnswer => {
    const child = /"child (\d)"/.exec(JSON.stringify(body))?.[1];
    const { messages } = body as { messages: unknown[] };
    if (child === undefined && messages.length === 1) {
      const spawn = (n: number): object => ({
        call: 'agent_trigger',
        id: `call_${n}`,
        args: { function: 'harness::spawn', description: 'delegates', payload: { task: `child ${n}` } },
      });
      return { events: anthropic.events([1, 2, 3, 4, 5].map(spawn) as never) };
    }
    if (messages.length > 1) return { events: anthropic.events([{ text: 'All five are back.' }]) };
    const times = asked.get(child ?? '') ?? [];
    asked.set(child ?? '', [...times, performance.now()]);
    return times.length === 0
      ? refusal(429, 'rate_limit_error', { 'retry-after-ms': '80' })
      : { events: anthropic.events([{ text: `done ${child}` }]) };
  };
  bench.server.script(...Array.from({ length: 20 }, () => answer));
  expect(await bench.rig.turn('delegate', to)).toMatchObject({ status: 'completed', result: 'All five are back.' });
  expect([...asked.keys()].sort()).toEqual(['1', '2', '3', '4', '5']);
  for (const [first = 0, second = 0, ...more] of asked.values()) {
    expect(more).toEqual([]);
    expect(second - first).toBeGreaterThanOrEqual(75);
  }
  expect(bench.server.requests).toHaveLength(12);
  expect(bench.rig.faults()).toEqual([]);
});

/** All bytes of the store, its log file included. */
const stored = (): string => ['', '-wal'].map((end) => readFileSync(join(bench.rig.dataDir, `${DATABASE_FILE}${end}`), 'latin1')).join('');
