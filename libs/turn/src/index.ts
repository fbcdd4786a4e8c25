export * from './events/turn-events.js';
export * from './failpoint.js';
export * from './loop/executor.js';
export * from './loop/ports.js';
export * from './policy/glob.js';
export * from './ports/index.js';
export * from './record/record.js';
export * from './turn.module.js';
