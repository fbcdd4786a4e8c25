/**
 * Kills worker processes at every durable write and at random, restarts them, and checks what is on disk.
 * `node dist/test/crash/main.js [--short] [--deaths <n>] [--seed <n>] [--minutes <n>] [--lanes <n>] [--at <part of "kind failpoint">]`
 * With `--workers <n>` only at random, where so many workers share each folder by a Redis.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { RedisServer } from '../support/redis-server.js';
import { bundleWorker } from './bundle.js';
import { PlacesRun } from './places.js';
import { RandomRun } from './random-run.js';
import { recoverySpeed } from './recovery.js';
import { type Extent, PLACES, type Place, POINTS, TAKEOVER_PLACES, within } from './scenarios.js';

const { values } = parseArgs({
  options: {
    /** Every point once, as in the ordinary tests. */
    short: { type: 'boolean' },
    /** Deaths in all, those at random among them. */
    deaths: { type: 'string' },
    seed: { type: 'string' },
    /** After this long no further data folder is begun, however many deaths are missing. */
    minutes: { type: 'string' },
    /** Data folders at once. */
    lanes: { type: 'string' },
    at: { type: 'string' },
    workers: { type: 'string' },
  },
});
const extent: Extent = values.short === true ? 'tests' : 'long';
const deaths = Number(values.deaths ?? { tests: 210, long: 1_000 }[extent]);
const wanted = (places: readonly Place[]): Place[] =>
  within(places, extent).filter((place) => values.at === undefined || `${place.kind} ${place.failpoint}`.includes(values.at));
const redis = values.workers === undefined ? null : await RedisServer.open();
const shared = redis === null ? null : { workers: Number(values.workers), redisUrl: redis.url };
const everyPoint = values.at === undefined && shared === null;

const started = performance.now();
const seconds = (): string => ((performance.now() - started) / 1000).toFixed(1);
await bundleWorker();
const lanes = Number(values.lanes ?? availableParallelism() + 1);
const places = new PlacesRun(lanes);
if (shared === null) {
  await places.firstLives(wanted(PLACES));
  await places.takeovers(wanted(TAKEOVER_PLACES));
  console.log(places.table());
}
const random = new RandomRun(Number(values.seed ?? 1), lanes, shared, (line) => console.log(`${seconds()} s: ${line}`));
if (values.at === undefined) {
  const isLate = (): boolean => performance.now() - started > Number(values.minutes ?? Infinity) * 60_000;
  await random.run(Math.max(0, deaths - places.deaths), isLate);
  console.log(random.table());
  if (extent === 'long' && shared === null) console.log(await recoverySpeed(10));
}
const faults = [...places.faults, ...random.faults];
for (const fault of faults) console.log(`VIOLATION ${fault}`);
const missed = everyPoint ? POINTS.filter((point) => !places.points.has(point)) : [];
const unreached = [...places.unreached, ...missed];
for (const name of unreached) console.log(`NOT REACHED ${name}`);
console.log(
  `${places.deaths + random.deaths} deaths, ${faults.length} violations, ${unreached.length} points not reached, ` +
    `${places.points.size} points, ${random.atPoints} of the random deaths at durable writes, ${seconds()} s`,
);
await redis?.dispose();
process.exitCode = faults.length + unreached.length > 0 ? 1 : 0;
