import { describe, expect, it } from 'vitest';
import { families, parkedTurns } from './loads.js';

/** The short form; `npm run test:load` does it with many more, and measures memory. */
describe('load', () => {
  it('100 sessions at once with holds and children: none is lost, each call is made once', async () => {
    const report = await families(100);
    expect(report).toMatchObject({ statuses: { completed: 220 }, held_calls: 100, work_calls: 100, unanswered: 0, reports: [] });
    expect(Object.keys(report.statuses)).toEqual(['completed']);
  }, 60_000);

  it('500 parked turns have no timer and no slot, and all complete when they are released', async () => {
    const report = await parkedTurns(500, 50);
    expect(report).toMatchObject({ statuses: { completed: 551 }, unanswered: 0, reports: [] });
    expect(report.timers_more).toBeLessThanOrEqual(0);
    expect(report.plain_turn_ms).toBeLessThan(2_000);
  }, 60_000);
});
