export { JobQueue, type QueueReport } from './job-queue.js';
export type { JobRow, NewJob } from './jobs.js';
export { SqliteQueue } from './queue.js';
export { QueueModule } from './queue.module.js';
export { JobRunner } from './runner.js';
