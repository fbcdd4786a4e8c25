export { runConformance } from './run.js';
export type { ScenarioResult } from './scenario.js';
export { scenarios } from './scenarios/index.js';
export { withoutDescriptions } from './shapes.js';
