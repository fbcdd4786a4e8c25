export { CronModule } from './cron.module.js';
export { PendingSweep } from './sweep.js';
