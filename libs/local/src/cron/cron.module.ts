import { Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { CronTriggers } from './cron.triggers.js';
import { PendingSweep } from './sweep.js';

/** Cron on the bus: the trigger type `cron`, and the sweep of pending calls that is bound to it. Needs `BUS` and `LiveConfiguration`. */
@Module({
  imports: [ScheduleModule.forRoot({ cronJobs: false, intervals: false, timeouts: false })],
  providers: [CronTriggers, PendingSweep],
  exports: [PendingSweep],
})
export class CronModule {}
