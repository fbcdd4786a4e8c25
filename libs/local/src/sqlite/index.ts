export * from './database.js';
export * from './storage-error.js';
export * from './writer.js';
