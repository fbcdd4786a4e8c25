/**
 * The long form of the attacks on the gateway. Run by `npm run test:gateway-fuzz`; `FUZZ_ROUNDS=20 FUZZ_SEED=7` does more,
 * and others. Prints what it came to, and fails when the worker, its memory or another client suffered.
 */
import { attackGateway } from './campaign.js';

const ROUNDS = Number(process.env['FUZZ_ROUNDS'] ?? 5);
const SEED = Number(process.env['FUZZ_SEED'] ?? 1);
/** How much memory may be held after all is over, beyond what was held before, in MB. */
const GROWTH_MB = 250;

const report = await attackGateway(SEED, ROUNDS, 4, (line) => console.log(line));
if (report.memory_after_mb > report.memory_before_mb + GROWTH_MB)
  report.faults.push(`memory grew by ${report.memory_after_mb - report.memory_before_mb} MB`);
console.log(JSON.stringify({ seed: SEED, rounds: ROUNDS, ...report }, null, 2));
process.exitCode = report.faults.length === 0 ? 0 : 1;
