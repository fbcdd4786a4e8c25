import type { MessageItem, SessionMeta, StatusReport } from '#libs/contracts';
import type { EmbeddedRuntime, TurnOwner } from '#libs/local';
import { usageError } from '../cli/exit.js';
import { closeTo, either } from '../input/close.js';

/** Rows that the session store gives at once. */
const PAGE = 500;

/** What is known of a session and its latest turn. */
export interface SessionState {
  meta: SessionMeta;
  turn: StatusReport | null;
  owner: TurnOwner;
}

/** Reads a session; throws when there is none under this id, naming those that were probably meant. */
export async function readSession(runtime: EmbeddedRuntime, sessionId: string): Promise<SessionState> {
  const found = await runtime.bus.trigger<{ meta: SessionMeta } | null>({
    function_id: 'session::get',
    payload: { session_id: sessionId },
  });
  if (found === null) {
    const known = await listSessions(runtime, {}, 200);
    const close = closeTo(
      sessionId,
      known.map((meta) => meta.session_id),
    );
    throw usageError(
      `there is no session ${sessionId} in ${runtime.dataDir}${close.length > 0 ? `; did you mean ${either(close)}?` : ''}`,
      'List what is there with `harness-cli sessions`, or name another place with --data-dir or --url.',
      'cli/unknown_session',
    );
  }
  const [turn, owner] = await Promise.all([
    runtime.bus.trigger<StatusReport | null>({ function_id: 'harness::status', payload: { session_id: sessionId } }),
    runtime.turnOwner(sessionId),
  ]);
  return { meta: found.meta, turn, owner };
}

/** The newest sessions that meet the filter, at most `limit`. */
export async function listSessions(
  { bus }: EmbeddedRuntime,
  filter: { status?: string; search?: string },
  limit: number,
): Promise<SessionMeta[]> {
  const words = (filter.search ?? '')
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const found: SessionMeta[] = [];
  let cursor: string | null = null;
  do {
    const page: { sessions: SessionMeta[]; next_cursor?: string | null } = await bus.trigger({
      function_id: 'session::list',
      payload: {
        limit: words.length > 0 ? PAGE : Math.min(PAGE, limit),
        ...(filter.status === undefined ? {} : { status: filter.status }),
        ...(cursor === null ? {} : { cursor }),
      },
    });
    found.push(
      ...page.sessions.filter((meta) =>
        words.every((word) => `${meta.session_id} ${meta.title} ${meta.description}`.toLowerCase().includes(word)),
      ),
    );
    cursor = page.next_cursor ?? null;
  } while (cursor !== null && found.length < limit);
  return found.slice(0, limit);
}

/** The transcript of a session, oldest first, page by page; `withImages` with the data of its images. */
export async function* transcript({ bus }: EmbeddedRuntime, sessionId: string, withImages: boolean): AsyncGenerator<MessageItem[]> {
  let cursor: string | null = null;
  do {
    const page: { messages: MessageItem[]; next_cursor?: string | null } = await bus.trigger({
      function_id: 'session::messages',
      payload: {
        session_id: sessionId,
        limit: PAGE,
        include_custom: true,
        include_image_data: withImages,
        ...(cursor === null ? {} : { cursor }),
      },
    });
    yield page.messages;
    cursor = page.next_cursor ?? null;
  } while (cursor !== null);
}

/** True when a turn has ended. */
export const isOver = (turn: StatusReport | null): boolean =>
  turn === null || (turn.status !== 'running' && turn.status !== 'awaiting_functions');
