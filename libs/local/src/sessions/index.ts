export { isSessionEvent, SessionEvents } from './events.js';
export { SessionsModule } from './sessions.module.js';
