export * from './database.js';
export { checkPages } from './pages.js';
export * from './storage-error.js';
export * from './token.js';
export * from './writer.js';
