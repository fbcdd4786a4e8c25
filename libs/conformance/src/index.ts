export { type ConformanceOptions, runConformance } from './run.js';
export type { Scenario, ScenarioResult } from './scenario.js';
export { scenarios } from './scenarios/index.js';
export { withoutDescriptions } from './shapes.js';
