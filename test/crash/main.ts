/**
 * Kills worker processes at every durable write and at random, restarts them, and checks what is on disk.
 * `node dist/test/crash/main.js [--short] [--deaths <n>] [--seed <n>] [--at <part of a failpoint's name>]`
 */
import { parseArgs } from 'node:util';
import { PlacesRun, RandomRun, recoverySpeed } from './runs.js';
import { PLACES, TAKEOVER_PLACES } from './scenarios.js';

const { values } = parseArgs({ options: { short: { type: 'boolean' }, deaths: { type: 'string' }, seed: { type: 'string' }, at: { type: 'string' } } });
const short = values.short === true;
const deaths = Number(values.deaths ?? (short ? 8 : 300));
const seed = Number(values.seed ?? 1);
const wanted = (place: { kind: string; failpoint: string; long?: boolean }): boolean =>
  (!short || place.long !== true) && (values.at === undefined || `${place.kind} ${place.failpoint}`.includes(values.at));

const started = performance.now();
const places = new PlacesRun();
await places.run(PLACES.filter(wanted), 'first life');
await places.run(TAKEOVER_PLACES.filter(wanted), 'takeover');
const random = new RandomRun(seed);
if (values.at === undefined) await random.run(deaths);
console.log(places.table());
console.log(random.table());
if (values.at === undefined) console.log(await recoverySpeed(short ? 3 : 10));
const faults = [...places.faults, ...random.faults];
for (const fault of faults) console.log(`VIOLATION ${fault}`);
const unreached = places.unreached;
for (const name of unreached) console.log(`NOT REACHED ${name}`);
console.log(`${places.deaths + random.deaths} deaths, ${faults.length} violations, ${unreached.length} points not reached, ${((performance.now() - started) / 1000).toFixed(1)} s`);
process.exitCode = faults.length + unreached.length > 0 ? 1 : 0;
