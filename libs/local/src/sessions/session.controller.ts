import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { HarnessError, type SessionMeta, type SessionStatus } from '#libs/contracts';
import { IiiFunction } from '#libs/iii';
import { type ListQuery, SessionLifecycle, type SessionTexts } from './lifecycle.js';
import { SessionRepository } from './repository.js';
import { sessionFunctions as contracts } from './schemas.js';

type Of<T> = T & { session_id: string };

/** The functions on sessions as wholes. */
@Controller()
export class SessionController {
  constructor(
    @Inject(SessionLifecycle) private readonly lifecycle: SessionLifecycle,
    @Inject(SessionRepository) private readonly sessions: SessionRepository,
  ) {}

  @IiiFunction({ id: 'session::create', ...contracts.create })
  create(@Payload() texts: SessionTexts): Promise<{ session_id: string; meta: SessionMeta }> {
    return this.lifecycle.create(texts);
  }

  @IiiFunction({ id: 'session::ensure', ...contracts.ensure })
  ensure(@Payload() { session_id, ...texts }: Of<SessionTexts>): Promise<{ session_id: string; created: boolean; meta: SessionMeta }> {
    return this.lifecycle.ensure(session_id, texts);
  }

  @IiiFunction({ id: 'session::get', ...contracts.get })
  get(@Payload() { session_id }: Of<object>): { meta: SessionMeta } | null {
    const meta = this.sessions.meta(session_id);
    return meta === null ? null : { meta };
  }

  /** Throws `session/invalid_cursor` for a cursor of another order. */
  @IiiFunction({ id: 'session::list', ...contracts.list })
  list(@Payload() query: ListQuery): { sessions: SessionMeta[]; next_cursor?: string } {
    return this.lifecycle.list(query);
  }

  /** Throws `session/not_found`, `session/entry_not_found`. */
  @IiiFunction({ id: 'session::fork', ...contracts.fork })
  fork(
    @Payload() { session_id, entry_id, title }: Of<{ entry_id: string; title?: string | null }>,
  ): Promise<{ session_id: string; meta: SessionMeta }> {
    return this.lifecycle.fork(session_id, entry_id, title);
  }

  /** Throws `session/not_found`. */
  @IiiFunction({ id: 'session::set-meta', ...contracts.setMeta })
  async setMeta(@Payload() { session_id, ...texts }: Of<SessionTexts>): Promise<{ meta: SessionMeta }> {
    return { meta: await this.lifecycle.setMeta(session_id, texts) };
  }

  /** Throws `session/not_found`. */
  @IiiFunction({ id: 'session::set-status', ...contracts.setStatus })
  setStatus(
    @Payload() { session_id, status, reason }: Of<{ status: SessionStatus; reason?: string | null }>,
  ): Promise<{ status: SessionStatus; previous_status: SessionStatus }> {
    return this.lifecycle.setStatus(session_id, status, reason ?? undefined);
  }

  /** Throws `session/not_found`, and `session/invalid_request` for attachments, which this store does not keep. */
  @IiiFunction({ id: 'session::set-draft', ...contracts.setDraft })
  async setDraft(
    @Payload() { session_id, draft, attachment_ids }: Of<{ draft?: string | null; attachment_ids?: string[] | null }>,
  ): Promise<{ draft: string | null; attachments: [] }> {
    if (attachment_ids != null && attachment_ids.length > 0) {
      throw new HarnessError(
        'session/invalid_request',
        `attachment_ids names ${JSON.stringify(attachment_ids[0])}, which session ${session_id} does not have`,
      );
    }
    return { draft: await this.lifecycle.setDraft(session_id, draft ?? null), attachments: [] };
  }

  /** Throws `session/not_found`, `session/entry_not_found`. */
  @IiiFunction({ id: 'session::set-active-leaf', ...contracts.setActiveLeaf })
  async setActiveLeaf(@Payload() { session_id, entry_id }: Of<{ entry_id: string }>): Promise<{ active_leaf: string }> {
    return { active_leaf: await this.lifecycle.setActiveLeaf(session_id, entry_id) };
  }

  /** Throws `session/turn_live` while the session's turn is not over. */
  @IiiFunction({ id: 'session::delete', ...contracts.delete })
  async delete(@Payload() { session_id }: Of<object>): Promise<{ deleted: boolean }> {
    return { deleted: await this.lifecycle.delete(session_id) };
  }
}
