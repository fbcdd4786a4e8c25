import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import type { Entry, JsonObject } from '#libs/contracts';
import { IiiFunction } from '#libs/iii';
import type { IncomingEntry, IncomingMessage } from './incoming.js';
import { type MessagesPage, type MessagesQuery, type RangeQuery, SessionReader, type TailPage, type TailQuery } from './reader.js';
import { sessionFunctions as contracts } from './schemas.js';
import { type MessageUpdate, SessionWriter } from './writer.js';

interface AppendRequest extends IncomingEntry {
  session_id: string;
  parent_id?: string | null;
}
interface AppendManyRequest {
  session_id: string;
  messages: IncomingMessage[];
  parent_id?: string | null;
  origin?: JsonObject | null;
}
interface UpdateRequest extends MessageUpdate {
  session_id: string;
  entry_id: string;
}

/** The functions on the entries of sessions. All throw `session/not_found` but `session::get-message`. */
@Controller()
export class MessagesController {
  constructor(
    @Inject(SessionWriter) private readonly writer: SessionWriter,
    @Inject(SessionReader) private readonly reader: SessionReader,
  ) {}

  /** Throws `session/invalid_request`, `session/parent_not_found`. */
  @IiiFunction({ id: 'session::append', ...contracts.append })
  async append(
    @Payload() { session_id, parent_id, ...incoming }: AppendRequest,
  ): Promise<{ entry_id: string; parent_id?: string; timestamp: number }> {
    const { id, parent_id: parent, timestamp } = await this.writer.append(session_id, incoming, parent_id ?? undefined);
    return { entry_id: id, ...(parent === undefined ? {} : { parent_id: parent }), timestamp };
  }

  /** Throws `session/empty_batch`, `session/parent_not_found`. */
  @IiiFunction({ id: 'session::append-many', ...contracts.appendMany })
  async appendMany(
    @Payload() { session_id, messages, parent_id, origin }: AppendManyRequest,
  ): Promise<{ entry_ids: string[]; last_entry_id: string }> {
    const entry_ids = await this.writer.appendMany(session_id, messages, origin ?? undefined, parent_id ?? undefined);
    return { entry_ids, last_entry_id: entry_ids.at(-1) ?? '' };
  }

  /** Throws `session/entry_not_found`, `session/invalid_entry_kind`, `session/details_not_supported`, `session/invalid_request`. */
  @IiiFunction({ id: 'session::update-message', ...contracts.updateMessage })
  update(@Payload() { session_id, entry_id, ...update }: UpdateRequest): Promise<{ updated: boolean; revision: number }> {
    return this.writer.update(session_id, entry_id, update);
  }

  /** Throws `session/invalid_cursor`, `session/entry_not_found`. */
  @IiiFunction({ id: 'session::messages', ...contracts.messages })
  messages(@Payload() query: MessagesQuery): MessagesPage {
    return this.reader.messages(query);
  }

  /** Throws `session/invalid_cursor`. */
  @IiiFunction({ id: 'session::messages-tail', ...contracts.messagesTail })
  tail(@Payload() query: TailQuery): TailPage {
    return this.reader.tail(query);
  }

  /** Throws `session/invalid_cursor`, `session/invalid_request`. */
  @IiiFunction({ id: 'session::messages-range', ...contracts.messagesRange })
  range(@Payload() query: RangeQuery): MessagesPage {
    return this.reader.range(query);
  }

  @IiiFunction({ id: 'session::get-message', ...contracts.getMessage })
  get(
    @Payload() { session_id, entry_id, include_image_data }: { session_id: string; entry_id: string; include_image_data?: boolean | null },
  ): { entry: Entry } | null {
    const entry = this.reader.entry(session_id, entry_id, include_image_data !== false);
    return entry === null ? null : { entry };
  }
}
