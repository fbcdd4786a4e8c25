/**
 * Load on one process: many sessions at once with holds and children, and many parked turns. Run by `npm run test:load`;
 * `LOAD_SESSIONS=2000 LOAD_PARKED=50000` makes it more. Prints the figures, and fails when one is over its limit.
 */
import 'reflect-metadata';
import { families, parkedTurns } from './loads.js';

const SESSIONS = Number(process.env['LOAD_SESSIONS'] ?? 1_000);
const PARKED = Number(process.env['LOAD_PARKED'] ?? 10_000);
/** Parked turns before the measuring: more than windows are cached. */
const WARM = 300;
const MAX_LEFT_MB = 64;
const MAX_BYTES_EACH = 2_048;

const crowd = await families(SESSIONS);
console.log(JSON.stringify(crowd, null, 2));
const parked = await parkedTurns(PARKED, WARM);
console.log(JSON.stringify(parked, null, 2));

const faults: string[] = [...crowd.reports, ...parked.reports];
const expect = (isSo: boolean, what: string): void => void (isSo || faults.push(what));
expect(
  crowd.statuses['completed'] === 2 * (SESSIONS + 10) && Object.keys(crowd.statuses).length === 1,
  'not every session and child completed',
);
expect(crowd.held_calls === SESSIONS && crowd.work_calls === SESSIONS, 'not every call was made once');
expect(crowd.unanswered + parked.unanswered === 0, 'a call has no result, or two');
expect(crowd.left_mb <= MAX_LEFT_MB, `${crowd.left_mb} MB are left, at most ${MAX_LEFT_MB} may be`);
expect(parked.bytes_each <= MAX_BYTES_EACH, `a parked turn takes ${parked.bytes_each} bytes, at most ${MAX_BYTES_EACH} may be`);
expect(parked.timers_more <= 0, `${parked.timers_more} timers came with the parked turns`);
expect(parked.statuses['completed'] === PARKED + WARM + 1, 'not every parked turn completed');
for (const fault of faults) console.error(`FAILED ${fault}`);
console.log(faults.length === 0 ? 'all limits hold' : `${faults.length} limits do not hold`);
process.exitCode = faults.length === 0 ? 0 : 1;
