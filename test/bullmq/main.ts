/**
 * Kills Redis under the load of three workers, again and again, and checks that nothing is lost or doubled.
 * `node dist/test/bullmq/main.js [--kills <n>] [--seed <n>]`
 */
import { parseArgs } from 'node:util';
import { RedisServer } from '../support/redis-server.js';
import { killRedis } from './kills.js';

const { values } = parseArgs({ options: { kills: { type: 'string', default: '50' }, seed: { type: 'string', default: '1' } } });
const started = performance.now();
const redis = await RedisServer.open();
try {
  const { turns, jobs, faults } = await killRedis(redis, { kills: Number(values.kills), seed: Number(values.seed) });
  for (const fault of faults) console.log(`FAULT ${fault}`);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${values.kills} kills of Redis, ${turns} turns, ${jobs} jobs, ${faults.length} faults, ${seconds} s`);
  process.exitCode = faults.length === 0 ? 0 : 1;
} finally {
  await redis.dispose();
}
