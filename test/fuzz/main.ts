/**
 * The long form of the test with a hostile model. Run by `npm run test:fuzz`; `FUZZ_TURNS=50000 FUZZ_SEED=7` plays more
 * turns, and others. Prints what it came to, and fails when something happened that must not.
 */
import 'reflect-metadata';
import { Campaign, type CampaignReport } from './campaign.js';

const TURNS = Number(process.env['FUZZ_TURNS'] ?? 5_000);
const SEED = Number(process.env['FUZZ_SEED'] ?? 1);
/** Turns in one data folder. */
const AT_A_TIME = 500;

const total: CampaignReport = { turns: 0, ends: {}, calls: 0, children: 0, generations: 0, faults: [] };
const started = performance.now();
for (let done = 0; done < TURNS; done += AT_A_TIME) {
  const report = await Campaign.run(SEED + done, Math.min(AT_A_TIME, TURNS - done));
  total.turns += report.turns;
  total.calls += report.calls;
  total.children += report.children;
  total.generations += report.generations;
  total.faults.push(...report.faults);
  for (const [how, count] of Object.entries(report.ends)) total.ends[how] = (total.ends[how] ?? 0) + count;
  console.log(`${total.turns} of ${TURNS} turns, ${total.faults.length} faults, ${Math.round(process.memoryUsage().rss / 2 ** 20)} MB`);
}
console.log(
  JSON.stringify(
    { seed: SEED, seconds: Math.round((performance.now() - started) / 1_000), ...total, faults: total.faults.length },
    null,
    2,
  ),
);
for (const fault of total.faults.slice(0, 50)) console.error(fault);
process.exitCode = total.faults.length === 0 ? 0 : 1;
