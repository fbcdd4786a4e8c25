import type { Scenario } from '../scenario.js';
import { published } from './published.js';
import { sending } from './sending.js';

/** All scenarios, in the order in which they run: what is published, then from the simple to the involved. */
export const scenarios: readonly Scenario[] = [...published, ...sending];
