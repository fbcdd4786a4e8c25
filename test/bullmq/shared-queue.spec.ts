import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openRuntime } from '#libs/local';
import { hasRedis, RedisServer } from '../support/redis-server.js';
import { ScriptedModel, text } from '../support/scripted-model.js';
import { fails, held, says } from '../support/scripts.js';
import type { TurnRig } from '../support/turn-rig.js';
import { killRedis } from './kills.js';
import { Workers } from './workers.js';

/** Worker runtimes that share one data folder and one Redis; they are closed after the test. */
async function workers(...options: Parameters<typeof Workers.open>): Promise<Workers> {
  const opened = await Workers.open(...options);
  onTestFinished(async () => await opened.close());
  return opened;
}

describe.skipIf(!hasRedis)('workers that share their steps by Redis (skipped where there is no redis-server)', () => {
  it('run turns side by side, each step once, by whoever is free', async () => {
    const shared = await workers(2, await RedisServer.start());
    const rig = shared.first;
    const sent = await Promise.all(Array.from({ length: 30 }, (_, n) => rig.send(`message ${n}`)));
    await shared.allCompleted(sent);
    expect([...shared.calls.values()]).toEqual(sent.map(() => 1));
    for (const { events } of shared.rigs) expect(events.some(({ type }) => type === 'step_started')).toBe(true);
    expect(rig.faults()).toEqual([]);
  });

  it('C44 lose nothing and double nothing, turn or job, while Redis is killed and comes back', async () => {
    const { turns, jobs, faults } = await killRedis(await RedisServer.start(), { kills: 4, seed: 1 });
    expect(faults).toEqual([]);
    expect([turns, jobs]).toEqual([64, 64]);
  });

  it('C44 run by themselves what they find while Redis is away', async () => {
    const redis = await RedisServer.start();
    const shared = await workers(2, redis);
    const rig = shared.first;
    await redis.kill();
    const sent = await Promise.all(Array.from({ length: 6 }, (_, n) => rig.send(`message ${n}`)));
    await shared.allCompleted(sent);
    expect([...shared.calls.values()]).toEqual(sent.map(() => 1));
    await redis.up();
    const again = await rig.send('and with Redis again');
    await rig.until(again.session_id, 'completed');
  });

  it('C42 queue a turn each time that it is resumed', async () => {
    const shared = await workers(1, await RedisServer.start());
    const rig = shared.first;
    rig.on('harness::hook::pre-trigger', 'guard::hold', () => ({ decision: 'hold' }));
    const turns = 3;
    for (let n = 0; n < turns; n += 1) {
      const { session_id, turn_id } = await rig.send('again', { session_id: 's_again' });
      const { pending_function_calls } = await rig.until(session_id, 'awaiting_functions');
      expect(await rig.release(session_id, turn_id, pending_function_calls[0] ?? '')).toMatchObject({ resolved: true, turn_resumed: true });
      await rig.until(session_id, 'completed');
    }
    expect(shared.calls.get('s_again')).toBe(turns);
  });

  it('C43 leave their steps to the others when they are closed', async () => {
    const shared = await workers(2, await RedisServer.start());
    const [rig, other] = shared.rigs as [TurnRig, TurnRig];
    const sent = await Promise.all(Array.from({ length: 20 }, (_, n) => rig.send(`message ${n}`)));
    await rig.close(true);
    await shared.allCompleted(sent, other);
    expect([...shared.calls.values()]).toEqual(sent.map(() => 1));
  });

  it('C43 cut a stream that outlasts the grace time of the one that ends, and begin it again in another, stored once', async () => {
    const [first, second] = [held('never '), held('at last ')];
    const streams = [first, second];
    const shared = await workers(2, await RedisServer.start(), {
      model: () => {
        const model = new ScriptedModel();
        model.fallback = () => streams.shift()?.script ?? says('a third time');
        return model;
      },
    });
    const { session_id } = await shared.first.send('tell me a story');
    await first.begun;
    const [ending, other] = shared.first.model.requests.length > 0 ? shared.rigs : [...shared.rigs].reverse();
    if (ending === undefined || other === undefined) throw new Error('there are two workers');
    await ending.runtime.close(200); // the stream would never end by itself
    await second.begun;
    second.answer(text('At last.'));
    await other.until(session_id, 'completed');
    expect(other.lines(session_id)).toEqual(['user: tell me a story', 'assistant: At last.']);
    expect(other.model.requests).toHaveLength(1);
    expect(other.faults()).toEqual([]);
  });

  it('C45 fail a turn whose step has used up its tries', async () => {
    const shared = await workers(2, await RedisServer.start(), {
      model: () => {
        const model = new ScriptedModel();
        model.fallback = () => fails('overloaded', 'transient', 'half ');
        return model;
      },
      config: 'max_transient_resumes: 2\nstep_backoff_ms: 10\n',
    });
    const { session_id } = await shared.first.send('go');
    await shared.first.until(session_id, 'failed');
    expect(shared.rigs.flatMap(({ model }) => model.requests)).toHaveLength(3);
    expect(shared.first.faults()).toEqual([]);
  });

  it('C44 refuse a Redis that may throw steps away, and say when there is none', async () => {
    const redis = await RedisServer.start('--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru');
    const dataDir = mkdtempSync(join(tmpdir(), 'harness-shared-'));
    onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
    await expect(openRuntime({ dataDir, role: 'worker', redisUrl: redis.url })).rejects.toMatchObject({
      code: 'queue/redis_eviction',
      message: expect.stringContaining('allkeys-lru') as string,
    });
    const refusal = async (redisUrl: string): Promise<string> =>
      await openRuntime({ dataDir, role: 'worker', redisUrl }).then(() => 'opened', String);
    expect(await refusal(redis.url.replace('redis:', 'http:'))).toContain('REDIS_URL must begin with redis://');
    const locked = await RedisServer.start('--requirepass', 'open sesame');
    expect(await refusal(locked.url)).toMatch(/queue\/redis_unreachable.*(NOAUTH|uthentication)/);
    await redis.kill();
    expect(await refusal(redis.url)).toMatch(/queue\/redis_unreachable.*ECONNREFUSED/);
  });

  it('C44 tell health that Redis is away, and that it is back', async () => {
    const redis = await RedisServer.start();
    const { vitals } = (await workers(1, redis)).first.runtime;
    const health = (): Promise<string> | undefined =>
      vitals?.dependencies[0]?.ping().then(
        () => 'up',
        () => 'down',
      );
    expect(await health()).toBe('up');
    await redis.kill();
    await expect.poll(health, { timeout: 5_000 }).toBe('down');
    await redis.up();
    await expect.poll(health, { timeout: 5_000 }).toBe('up');
  });
});
