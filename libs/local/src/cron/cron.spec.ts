import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BUS, type LocalBus, LocalEngine } from '#libs/iii';
import { ConfigurationModule, LiveConfiguration } from '../configuration/index.js';
import { parseCron } from './expression.js';
import { CronModule, PendingSweep } from './index.js';

let dir: string;
let app: INestApplicationContext;
let bus: LocalBus;
let live: LiveConfiguration;
const reported: string[] = [];
const START = Date.UTC(2030, 0, 1, 0, 0, 0);

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'cron-'));
  reported.length = 0;
  vi.useFakeTimers({ now: START + 250, toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  bus = new LocalEngine({ report: (message) => reported.push(message) }).connect({ name: 'test' });
  live = new LiveConfiguration(dir, { graceMs: 0 });
  const module = await Test.createTestingModule({
    imports: [
      { module: class {}, global: true, providers: [{ provide: BUS, useValue: bus }], exports: [BUS] },
      ConfigurationModule.forRoot({ configuration: live }),
      CronModule,
    ],
  }).compile();
  app = await module.init();
});
afterEach(async () => {
  await app.close();
  vi.useRealTimers();
  rmSync(dir, { recursive: true, force: true });
});

interface CronEvent {
  trigger: string;
  job_id: string;
  scheduled_time: string;
  actual_time: string;
}
/** A function that notes the events it gets. */
function listener(id: string, answer: (event: CronEvent) => unknown = () => null): CronEvent[] {
  const heard: CronEvent[] = [];
  bus.registerFunction({ id }, (event) => {
    heard.push(event as CronEvent);
    return answer(event as CronEvent);
  });
  return heard;
}
const bind = (expression: string, more: { [key: string]: string } = {}) =>
  bus.registerTrigger({ type: 'cron', function_id: 'test::tick', config: { expression, ...more } });
const timesOf = (events: CronEvent[]): string[] => events.map((event) => event.scheduled_time.slice(5, 19));
const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

describe('the trigger type cron', () => {
  it('fires at its times in UTC, and says which', async () => {
    const heard = listener('test::tick');
    const { id } = bind('*/20 * * * * *');
    await pass(60_000);
    expect(timesOf(heard)).toEqual(['01-01T00:00:20', '01-01T00:00:40', '01-01T00:01:00']);
    expect(heard[0]).toEqual({
      trigger: 'cron',
      job_id: id,
      scheduled_time: '2030-01-01T00:00:20.000Z',
      actual_time: '2030-01-01T00:00:20.000Z',
    });
  });

  it.each([
    ['0 30 9 ? JAN mon-fri', 7, ['01-01T09:30:00', '01-02T09:30:00', '01-03T09:30:00', '01-04T09:30:00', '01-07T09:30:00']],
    ['0 0 0 1/2 * ?', 6, ['01-03T00:00:00', '01-05T00:00:00', '01-07T00:00:00']],
    ['0 0 12 * * 7', 7, ['01-06T12:00:00']],
    ['0 0 0 2 1 * 2031', 40, []],
    ['0 0 0 2 1 * 2029-2030', 40, ['01-02T00:00:00']],
  ])('understands %s', async (expression, days, expected) => {
    const heard = listener('test::tick');
    bind(expression);
    for (let day = 0; day < days; day++) await pass(86_400_000);
    expect(timesOf(heard)).toEqual(expected);
  });

  it('fires in the year that is asked for, further away than a timer can wait', async () => {
    const heard = listener('test::tick');
    bind('0 0 0 1 6 * 2031');
    for (let day = 0; day < 600; day++) await pass(86_400_000);
    expect(heard.map((event) => event.scheduled_time)).toEqual(['2031-06-01T00:00:00.000Z']);
  });

  it('stops when the binding goes, and when the application closes', async () => {
    const heard = listener('test::tick');
    const first = bind('* * * * * *');
    await pass(2_000);
    first.unregister();
    await pass(5_000);
    expect(heard).toHaveLength(2);
    bind('* * * * * *');
    await pass(1_000);
    expect(heard).toHaveLength(3);
    await app.close();
    await pass(5_000);
    expect(heard).toHaveLength(3);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('asks the condition first: only false skips', async () => {
    const heard = listener('test::tick');
    const answers = [false, undefined, false, true];
    listener('test::condition', () => answers.shift());
    bind('* * * * * *', { condition_function_id: 'test::condition' });
    await pass(4_000);
    expect(timesOf(heard)).toEqual(['01-01T00:00:02', '01-01T00:00:04']);
  });

  it('never runs a binding beside itself, and goes on after a failure', async () => {
    const ends: (() => void)[] = [];
    const heard = listener('test::tick', () => new Promise<void>((resolve) => ends.push(resolve)));
    bind('* * * * * *');
    await pass(3_000);
    expect(heard).toHaveLength(1);
    ends[0]?.();
    await pass(1_000);
    expect(timesOf(heard)).toEqual(['01-01T00:00:01', '01-01T00:00:04']);
    bus.registerFunction({ id: 'test::fails' }, () => Promise.reject(new Error('no')));
    bus.registerTrigger({ type: 'cron', function_id: 'test::fails', config: { expression: '* * * * * *' } });
    await pass(2_000);
    ends[1]?.();
    await pass(1_000);
    expect(heard).toHaveLength(3);
  });

  it.each(['* * * * *', '61 * * * * *', '0 0 0 31 2 *', 'x'])('refuses %s, which leaves the binding parked', async (expression) => {
    bind(expression);
    await pass(0);
    expect(reported).toEqual([expect.stringContaining('cron/invalid_request: expression must be a cron expression')]);
  });
});

describe('the sweep of pending calls', () => {
  const set = (text: string): void => {
    writeFileSync(join(dir, 'harness.yaml'), text);
    live.read();
  };

  it('runs at the expression in force, and follows its changes at once', async () => {
    const heard = listener('harness::sweep-pending', () => ({ ok: true, resolved: 0 }));
    app.get(PendingSweep, { strict: false }).start();
    await pass(120_000);
    expect(timesOf(heard)).toEqual(['01-01T00:01:00', '01-01T00:02:00']);
    set('sweep_expression: "*/15 * * * * *"\n');
    await pass(30_000);
    expect(timesOf(heard).slice(2)).toEqual(['01-01T00:02:15', '01-01T00:02:30']);
    set('sweep_expression: "0 0 0 31 2 *"\n');
    await pass(15_000);
    expect(timesOf(heard).slice(4)).toEqual(['01-01T00:02:45']);
    expect(live.faults[0]?.problem).toBe('must be a cron expression, but its day of the month is in none of its months');
    set('max_depth: 1\n');
    await pass(60_000);
    expect(timesOf(heard).slice(5)).toEqual(['01-01T00:03:00']);
  });

  it('is bound once however often it is started, and not at all when it is stopped', async () => {
    const heard = listener('harness::sweep-pending', () => ({ ok: true, resolved: 0 }));
    const sweep = app.get(PendingSweep, { strict: false });
    sweep.start();
    sweep.start();
    await pass(60_000);
    expect(heard).toHaveLength(1);
    sweep.stop();
    set('sweep_expression: "* * * * * *"\n');
    await pass(60_000);
    expect(heard).toHaveLength(1);
  });
});

describe('parseCron', () => {
  it('takes every expression that is made by its rules', () => {
    const number = (min: number, max: number) => fc.integer({ min, max });
    const item = (min: number, max: number) =>
      fc.oneof(
        fc.constantFrom('*', '?', '*/7'),
        number(min, max).map(String),
        fc.tuple(number(min, max), number(min, max), number(1, 9)).map(([a, b, step]) => `${Math.min(a, b)}-${Math.max(a, b)}/${step}`),
      );
    const fields = [
      [0, 59],
      [0, 59],
      [0, 23],
      [1, 28],
      [1, 12],
      [0, 7],
      [1970, 2199],
    ] as const;
    const parts = fields.map(([min, max]) => fc.array(item(min, max), { minLength: 1, maxLength: 3 }).map((items) => items.join(',')));
    fc.assert(
      fc.property(fc.tuple(...parts), fc.boolean(), (made, withYear) => {
        const parsed = parseCron(made.slice(0, withYear ? 7 : 6).join(' '));
        expect(parsed.ok).toBe(true);
        if (parsed.ok) expect(parsed.value.fields).toMatch(/^[\d*,/ -]+$/);
      }),
      { numRuns: 500 },
    );
  });
});
