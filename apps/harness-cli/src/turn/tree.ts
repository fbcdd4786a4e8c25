import { callsOf, type MessageItem, type SessionMeta, type SessionStatus, type StatusReport, type TurnStatus } from '#libs/contracts';
import type { Bus } from '#libs/iii';

/** Rows that the session store gives at once. */
const PAGE = 500;

/** A session with its sub-agents. Sums are over all turns of the session itself. */
export interface TreeNode {
  session_id: string;
  title: string;
  /** Of the latest turn; of the session when it has none. */
  status: TurnStatus | SessionStatus;
  turns: number;
  calls: number;
  input_tokens: number;
  output_tokens: number;
  /** Null when no price is known. */
  cost_usd: number | null;
  children: TreeNode[];
}

/** The tree below a session, by what the session of a sub-agent says of its parent. */
export async function readTree(bus: Bus, meta: SessionMeta, seen: Set<string> = new Set()): Promise<TreeNode> {
  seen.add(meta.session_id);
  const { session_id, title } = meta;
  const report = await bus.trigger<StatusReport | null>({ function_id: 'harness::status', payload: { session_id } });
  const node: TreeNode = { session_id, title, status: report?.status ?? meta.status, ...(await sums(bus, session_id)), children: [] };
  for (const child of await childrenOf(bus, session_id))
    if (!seen.has(child.session_id)) node.children.push(await readTree(bus, child, seen));
  return node;
}

async function childrenOf(bus: Bus, sessionId: string): Promise<SessionMeta[]> {
  return await pages<SessionMeta>(async (cursor) => {
    const payload = { limit: PAGE, order: 'created_asc', metadata: { parent_session_id: sessionId }, ...cursor };
    const page = await bus.trigger<{ sessions: SessionMeta[]; next_cursor?: string | null }>({ function_id: 'session::list', payload });
    return { rows: page.sessions, next: page.next_cursor };
  });
}

async function sums(bus: Bus, sessionId: string): Promise<Omit<TreeNode, 'session_id' | 'title' | 'status' | 'children'>> {
  const all = await pages<MessageItem>(async (cursor) => {
    const payload = { session_id: sessionId, limit: PAGE, roles: ['assistant'], include_image_data: false, ...cursor };
    const page = await bus.trigger<{ messages: MessageItem[]; next_cursor?: string | null }>({ function_id: 'session::messages', payload });
    return { rows: page.messages, next: page.next_cursor };
  });
  const turns = new Set<unknown>();
  const sum = { calls: 0, input_tokens: 0, output_tokens: 0, cost_usd: null as number | null };
  for (const { message, origin } of all) {
    if (message?.role !== 'assistant') continue;
    turns.add(origin?.['turn_id']);
    sum.calls += callsOf(message.content).length;
    const { input, cache_read, cache_write, output, cost_usd } = message.usage ?? {};
    sum.input_tokens += (input ?? 0) + (cache_read ?? 0) + (cache_write ?? 0);
    sum.output_tokens += output ?? 0;
    if (cost_usd != null) sum.cost_usd = (sum.cost_usd ?? 0) + cost_usd;
  }
  return { turns: turns.size, ...sum };
}

type Cursor = { cursor?: string };
async function pages<Row>(read: (cursor: Cursor) => Promise<{ rows: Row[]; next?: string | null }>): Promise<Row[]> {
  const all: Row[] = [];
  let cursor: Cursor | null = {};
  while (cursor !== null) {
    const { rows, next } = await read(cursor);
    all.push(...rows);
    cursor = next == null ? null : { cursor: next };
  }
  return all;
}
