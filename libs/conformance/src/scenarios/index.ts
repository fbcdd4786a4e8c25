import type { Scenario } from '../scenario.js';
import { calls } from './calls.js';
import { children } from './children.js';
import { events } from './events.js';
import { hooks } from './hooks.js';
import { outputs } from './output.js';
import { pending } from './pending.js';
import { published } from './published.js';
import { refusals } from './refusals.js';
import { sending } from './sending.js';
import { stopping } from './stopping.js';

/** All scenarios, in the order in which they run: from what is published to what is involved. */
export const scenarios: readonly Scenario[] = [
  ...published,
  ...refusals,
  ...sending,
  ...calls,
  ...hooks,
  ...pending,
  ...stopping,
  ...children,
  ...outputs,
  ...events,
];
