export type { TurnSpan, TurnSpans } from './read.js';
export { TracesModule } from './traces.module.js';
