import { Logger, Module } from '@nestjs/common';
import { ProcessRegistry } from '../processes/registry.js';
import { DATABASE, type SqliteConnection, SqliteWriter } from '../sqlite/index.js';
import { QueueController } from './queue.controller.js';
import { SqliteQueue } from './queue.js';

const logger = new Logger('queue');

/**
 * The queue of enqueue actions, with its functions. Needs `DATABASE`, `SqliteWriter` and `ProcessRegistry`; whoever makes
 * them gives the queue to the engine, and starts and stops it.
 */
@Module({
  controllers: [QueueController],
  providers: [
    {
      provide: SqliteQueue,
      inject: [DATABASE, SqliteWriter, ProcessRegistry],
      useFactory: (db: SqliteConnection, writer: SqliteWriter, processes: ProcessRegistry) =>
        new SqliteQueue(db, writer, processes, (message, context) => logger.warn(`${message} ${JSON.stringify(context)}`)),
    },
  ],
  exports: [SqliteQueue],
})
export class QueueModule {}
