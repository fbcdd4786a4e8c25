import { Inject, Injectable } from '@nestjs/common';
import {
  type AgentMessage,
  type AssistantMessage,
  type ContentBlock,
  type Entry,
  type ErrorKind,
  HarnessError,
  type JsonObject,
  type JsonValue,
  newEntryId,
  type StopReason,
  type Usage,
} from '#libs/contracts';
import { StoreCommits } from '../turns/commits.js';
import { acceptContent, acceptEntry, acceptMessage, type IncomingEntry, type IncomingMessage } from './incoming.js';
import { SessionRepository } from './repository.js';
import { entryOf } from './rows.js';

/** New content of a message, and what else may change with it. */
export interface MessageUpdate {
  content: ContentBlock[];
  details?: JsonValue;
  usage?: Usage | null;
  /** How an assistant message ended. */
  ending?: { stop_reason: StopReason; error_kind?: ErrorKind | null; error_message?: string | null } | null;
  origin?: JsonObject | null;
  expected_revision?: number | null;
}

/** Adds and changes entries. Each call is one durable commit. */
@Injectable()
export class SessionWriter {
  constructor(
    @Inject(SessionRepository) private readonly sessions: SessionRepository,
    @Inject(StoreCommits) private readonly commits: StoreCommits,
  ) {}

  /** Appends one entry; an entry id that is there gives the entry that has it. */
  async append(sessionId: string, incoming: IncomingEntry, parentId: string | undefined): Promise<Entry> {
    const entry = acceptEntry(incoming, Date.now());
    return await this.commits.run(({ log }) => this.sessions.append(sessionId, entry, log, parentId).entry, 'session-append');
  }

  /** Appends messages, each to the one before; all or none. Returns their entry ids. */
  async appendMany(
    sessionId: string,
    messages: readonly IncomingMessage[],
    origin: JsonObject | undefined,
    parentId: string | undefined,
  ): Promise<string[]> {
    if (messages.length === 0) throw new HarnessError('session/empty_batch', 'messages must hold at least one message');
    const accepted = messages.map(acceptMessage);
    return await this.commits.run(({ log }) => {
      const timestamp = Date.now();
      let parent = parentId;
      return accepted.map((message) => {
        parent = this.sessions.append(
          sessionId,
          { entry_id: newEntryId(), timestamp, message, ...(origin === undefined ? {} : { origin }) },
          log,
          parent,
        ).entry.id;
        return parent;
      });
    }, 'session-append-many');
  }

  /** Replaces the content of a message. A wrong `expected_revision` writes nothing. */
  async update(sessionId: string, entryId: string, update: MessageUpdate): Promise<{ updated: boolean; revision: number }> {
    const content = acceptContent(update.content);
    return await this.commits.run(({ log }) => {
      const session = this.sessions.existing(sessionId);
      const row = this.sessions.existingEntry(session, entryId);
      const entry = entryOf(row);
      if (entry.kind === 'custom')
        throw new HarnessError('session/invalid_entry_kind', `entry ${entryId} holds custom data, which has no content to update`);
      if (update.expected_revision != null && update.expected_revision !== row.revision) return { updated: false, revision: row.revision };
      const message = updated(entry.message, content, update);
      return { updated: true, revision: this.sessions.replace(session, row, message, update.origin ?? entry.origin, Date.now(), log) };
    }, 'session-update');
  }
}

const endedAs = ({ stop_reason, error_kind, error_message }: NonNullable<MessageUpdate['ending']>): Partial<AssistantMessage> => ({
  stop_reason,
  ...(error_kind == null ? {} : { error_kind }),
  ...(error_message == null ? {} : { error_message }),
});

function updated(message: AgentMessage, content: ContentBlock[], { details, usage, ending }: MessageUpdate): AgentMessage {
  if (ending != null && message.role !== 'assistant') {
    throw new HarnessError('session/invalid_request', `ending is only for assistant messages, and this one has the role ${message.role}`);
  }
  if (usage != null && message.role !== 'assistant') {
    throw new HarnessError('session/invalid_request', `usage is only for assistant messages, and this one has the role ${message.role}`);
  }
  switch (message.role) {
    case 'assistant':
    case 'user':
      if (details != null)
        throw new HarnessError(
          'session/details_not_supported',
          `details are only for results and custom messages, and this one has the role ${message.role}`,
        );
      return message.role === 'assistant'
        ? { ...message, ...(ending == null ? {} : endedAs(ending)), content, ...(usage == null ? {} : { usage }) }
        : { ...message, content };
    case 'function_result':
    case 'custom':
      return details == null ? { ...message, content } : { ...message, content, details };
    default: {
      const unknown: never = message;
      throw new HarnessError('session/invalid_entry_kind', `unknown message ${JSON.stringify(unknown)}`);
    }
  }
}
