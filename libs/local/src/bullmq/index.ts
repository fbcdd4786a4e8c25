export { type JobWake, SharedJobQueue } from './job-queue.js';
export { checkRedis } from './redis.js';
export { SharedStepQueue, type StepWake } from './step-queue.js';
export { Wakes } from './wakes.js';
