export * from './confine.js';
export * from './glob.js';
export * from './isolate.js';
export * from './path-error.js';
export * from './settings.js';
