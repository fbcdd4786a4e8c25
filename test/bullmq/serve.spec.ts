import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt, folder, here, type Running, start, statusOf } from '../cli/harness-cli.js';
import { readDisk } from '../support/disk.js';
import { lines } from '../support/lines.js';
import { hasRedis, RedisServer } from '../support/redis-server.js';

const PATIENCE = { timeout: 40_000 };
const WORDS = Array.from({ length: 20 }, (_, n) => `w${n}`).join(' ');

/** A worker as a user starts it, with the address of its health. */
async function serve(dataDir: string, redis: RedisServer): Promise<{ worker: Running; health: () => Promise<number> }> {
  const env = { REDIS_URL: redis.url, HARNESS_GATEWAY_PORT: '0', HARNESS_HTTP_PORT: '0' };
  const worker = start(['serve', '--data-dir', dataDir], { env });
  await worker.until('stdout', /health \S+\n/);
  const url = /health (\S+)\n/.exec(worker.stdout)?.[1] ?? '';
  return { worker, health: async () => (await fetch(`${url}/health/ready`)).status };
}

/** The process that runs the step of a session; 0 while none does. */
function runnerOf(dataDir: string, sessionId: string): number {
  const db = new Sqlite(join(dataDir, 'harness.db'), { readonly: true, timeout: 10_000 });
  try {
    const sql = 'SELECT pid FROM turns JOIN processes USING (owner) WHERE session_id = ? AND job_step IS NOT NULL';
    return (db.prepare(sql).pluck().get(sessionId) as number | undefined) ?? 0;
  } finally {
    db.close();
  }
}

describe.skipIf(!hasRedis)('two serve processes on one folder and one Redis (skipped where there is no redis-server)', () => {
  beforeAll(ensureBuilt, 180_000);

  it('C43 C44 hand a stream over at SIGTERM, and tell in health within seconds whether Redis is there', async () => {
    const dataDir = folder();
    const redis = await RedisServer.start();
    const workers = [await serve(dataDir, redis), await serve(dataDir, redis)];
    const send = ['send', `/slow 150\n/say ${WORDS}`, '--no-wait', '--provider', 'demo', '--session', 's_long', '--data-dir', dataDir];
    expect((await here(send)).code).toBe(0);
    const said = (): string => lines(readDisk(dataDir).sessions[0]?.entries ?? []).join();
    await expect.poll(said, PATIENCE).toContain('assistant: w0 w1');
    const runner = runnerOf(dataDir, 's_long');
    const ending = workers.find(({ worker }) => worker.child.pid === runner);
    const other = workers.find(({ worker }) => worker.child.pid !== runner);
    if (ending === undefined || other === undefined) throw new Error(`process ${runner} runs the step`);
    ending.worker.signal('SIGTERM');
    await ending.worker.until('stderr', /draining/);
    ending.worker.signal('SIGTERM'); // the second one does not wait for the stream
    await ending.worker.result;
    expect((await statusOf(dataDir, 's_long')).turn?.status).toBe('running');
    await expect.poll(async () => (await statusOf(dataDir, 's_long')).turn?.status, PATIENCE).toBe('completed');
    expect(lines(readDisk(dataDir).sessions[0]?.entries ?? []).slice(1)).toEqual([`assistant: ${WORDS}`]);

    expect(await other.health()).toBe(200);
    await redis.kill();
    await expect.poll(other.health, { timeout: 5_000 }).toBe(503);
    await redis.up();
    await expect.poll(other.health, { timeout: 10_000 }).toBe(200);
    await redis.kill();
    other.worker.signal('SIGTERM'); // nothing waits for Redis
    expect((await other.worker.result).code).toBe(0);
  }, 180_000);
});
