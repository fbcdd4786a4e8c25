export { isSessionEvent, type SessionEventConfig, SessionEvents } from './events.js';
export { SessionRepository } from './repository.js';
export { SessionsModule } from './sessions.module.js';
export { SqliteTranscript } from './transcript.js';
