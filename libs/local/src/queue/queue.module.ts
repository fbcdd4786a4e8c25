import { Module } from '@nestjs/common';
import { QueueController } from './queue.controller.js';

/** The functions of the queue of enqueue actions. Needs its `JobQueue`, which is part of the store. */
@Module({ controllers: [QueueController] })
export class QueueModule {}
