export { SqliteQueue } from './queue.js';
export { QueueModule } from './queue.module.js';
