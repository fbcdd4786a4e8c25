export * from './ports/index.js';
export * from './record/record.js';
