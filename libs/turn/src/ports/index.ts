export * from './clock.js';
export * from './feed.js';
export * from './journal.js';
export * from './queue.js';
export * from './settings.js';
export * from './spans.js';
export * from './transcript.js';
