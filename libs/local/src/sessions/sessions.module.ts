import { Module } from '@nestjs/common';
import { SessionEvents } from './events.js';
import { SessionLifecycle } from './lifecycle.js';
import { MessagesController } from './messages.controller.js';
import { SessionReader } from './reader.js';
import { SessionController } from './session.controller.js';
import { SessionWriter } from './writer.js';

/**
 * The session store on the bus: `session::*` and its events. Needs `BUS`, `DATABASE`, `SessionRepository`,
 * `SqliteTranscript` and `StoreCommits`; whoever makes them publishes `SessionEvents` and adds it to the delivery.
 */
@Module({
  controllers: [SessionController, MessagesController],
  providers: [SessionEvents, SessionLifecycle, SessionReader, SessionWriter],
  exports: [SessionEvents],
})
export class SessionsModule {}
