/**
 * Kills worker processes at every durable write and at random, restarts them, and checks what is on disk.
 * `node dist/test/crash/main.js [--short | --tests] [--deaths <n>] [--seed <n>] [--at <part of "kind failpoint">]`
 */
import { parseArgs } from 'node:util';
import { PlacesRun, RandomRun, recoverySpeed } from './runs.js';
import { type Extent, PLACES, type Place, TAKEOVER_PLACES, within } from './scenarios.js';

const { values } = parseArgs({
  options: {
    short: { type: 'boolean' },
    tests: { type: 'boolean' },
    deaths: { type: 'string' },
    seed: { type: 'string' },
    at: { type: 'string' },
  },
});
const extent: Extent = values.tests === true ? 'tests' : values.short === true ? 'short' : 'long';
const deaths = Number(values.deaths ?? { tests: 3, short: 8, long: 300 }[extent]);
const wanted = (places: readonly Place[]): Place[] =>
  within(places, extent).filter((place) => values.at === undefined || `${place.kind} ${place.failpoint}`.includes(values.at));

const started = performance.now();
const places = new PlacesRun();
await places.firstLives(wanted(PLACES));
await places.takeovers(wanted(TAKEOVER_PLACES));
console.log(places.table());
const random = new RandomRun(Number(values.seed ?? 1));
if (values.at === undefined) {
  await random.run(deaths);
  console.log(random.table());
  if (extent !== 'tests') console.log(await recoverySpeed(extent === 'short' ? 2 : 10));
}
const faults = [...places.faults, ...random.faults];
for (const fault of faults) console.log(`VIOLATION ${fault}`);
for (const name of places.unreached) console.log(`NOT REACHED ${name}`);
const seconds = ((performance.now() - started) / 1000).toFixed(1);
console.log(
  `${places.deaths + random.deaths} deaths, ${faults.length} violations, ${places.unreached.length} points not reached, ${seconds} s`,
);
process.exitCode = faults.length + places.unreached.length > 0 ? 1 : 0;
