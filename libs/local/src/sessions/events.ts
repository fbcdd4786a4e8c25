import { Inject, Injectable } from '@nestjs/common';
import type { JsonObject, Role, Schema, SessionEvent, SessionEventType } from '#libs/contracts';
import { BUS, type Bus, TriggerBindings } from '#libs/iii';
import { matchesMetadata } from './metadata.js';
import { SessionRepository } from './repository.js';

/** Which events a function is bound to; each key that is given must match. */
export interface SessionEventConfig {
  session_id?: string | null;
  roles?: Role[] | null;
  metadata?: JsonObject | null;
}

const fields = {
  session_id: { description: 'Only events of this session.', type: ['string', 'null'] },
  roles: {
    description: 'Only messages of these roles, and no custom entries.',
    items: { enum: ['user', 'assistant', 'function_result', 'custom'], type: 'string' },
    type: ['array', 'null'],
  },
  metadata: {
    additionalProperties: true,
    description: 'Only sessions whose metadata has each of these keys with an equal value.',
    type: ['object', 'null'],
  },
} as const;
const config = (...keys: (keyof typeof fields)[]): Schema => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  additionalProperties: false,
  properties: Object.fromEntries(keys.map((key) => [key, fields[key]])),
  type: 'object',
});

/** The six trigger types of the session store: description and binding configuration schema. */
const types: Readonly<Record<SessionEventType, { description: string; config: Schema }>> = {
  'session::created': { description: 'A session was made.', config: config('metadata') },
  'session::message-added': { description: 'An entry was appended.', config: config('session_id', 'roles', 'metadata') },
  'session::message-updated': {
    description: 'A message changed; a higher `revision` is newer.',
    config: config('session_id', 'roles', 'metadata'),
  },
  'session::status-changed': { description: 'The status of a session, or its reason, changed.', config: config('session_id', 'metadata') },
  'session::meta-updated': {
    description: 'Title, description or metadata of a session changed.',
    config: config('session_id', 'metadata'),
  },
  'session::deleted': { description: 'A session was removed.', config: config('session_id', 'metadata') },
};

/** True for an event of the session store. */
export const isSessionEvent = (event: { type: string }): event is SessionEvent => Object.hasOwn(types, event.type);

/** The trigger types of the session store, and the delivery to what is bound to them. */
@Injectable()
export class SessionEvents {
  private readonly bindings = new Map<string, TriggerBindings<SessionEventConfig>>(
    Object.entries(types).map(([id, type]) => [
      id,
      new TriggerBindings<SessionEventConfig>({ id, description: type.description, trigger_request_format: type.config }),
    ]),
  );

  constructor(
    @Inject(BUS) private readonly bus: Bus,
    @Inject(SessionRepository) private readonly sessions: SessionRepository,
  ) {}

  /** Makes the trigger types known on the bus. */
  publish(): void {
    for (const bindings of this.bindings.values()) bindings.publish(this.bus);
  }

  /** True when a function is bound to events of this type. */
  wants(type: string): boolean {
    return this.bindings.get(type)?.empty === false;
  }

  /** Calls the functions that are bound to the event; rejects when one of them failed, after all were called. */
  async deliver(event: SessionEvent): Promise<void> {
    const bindings = this.bindings.get(event.type);
    const { session_id } = event.payload;
    const role = 'message' in event.payload ? event.payload.message?.role : undefined;
    let metadata: JsonObject | undefined;
    let payload: unknown = event.payload;
    if (event.type === 'session::deleted') {
      payload = { session_id, timestamp: event.payload.timestamp };
      metadata = event.payload.metadata;
    } else if (bindings?.list().some((binding) => binding.config.metadata != null)) {
      metadata = this.sessions.meta(session_id)?.metadata;
    }
    await bindings?.call(this.bus, payload, (wanted) => {
      if (wanted.session_id != null && wanted.session_id !== session_id) return false;
      if (wanted.roles != null && (role === undefined || !wanted.roles.includes(role))) return false;
      return matchesMetadata(wanted.metadata, metadata);
    });
  }
}
