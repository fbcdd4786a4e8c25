import type { JsonValue, SessionStatus, TurnStatus } from '#libs/contracts';
import type { TurnOwner } from '#libs/local';
import { isOver, type SessionState } from '../turn/session.js';
import { fields } from './fields.js';
import { ago, cut, plural } from './format.js';
import { jsonBlock, sanitize, sanitizeLine } from './sanitize.js';
import type { Style } from './style.js';

/** A status in its colour. */
export function paintStatus(status: SessionStatus | TurnStatus, style: Style, text: string = status): string {
  switch (status) {
    case 'completed':
    case 'done':
      return style.green(text);
    case 'failed':
    case 'error':
      return style.red(text);
    case 'running':
    case 'working':
      return style.cyan(text);
    case 'awaiting_functions':
    case 'cancelled':
      return style.yellow(text);
    case 'idle':
      return text;
    default:
      throw new Error(`unknown status ${String(status satisfies never)}`);
  }
}

function ownerText(owner: TurnOwner, { turn, meta }: SessionState, name: string): string {
  const id = sanitizeLine(meta.session_id);
  switch (owner) {
    case 'self':
      return 'this process';
    case 'other':
      return 'another process that is alive';
    case 'gone':
      return `nobody: its process is gone\n\`${name} serve\` goes on with it, \`${name} send --session ${id} "go on"\` too, \`${name} stop ${id}\` ends it`;
    case 'none':
      return turn?.status === 'awaiting_functions'
        ? 'nobody, until its pending calls are settled'
        : `nobody yet; \`${name} serve\` runs it`;
    default:
      throw new Error(`unknown owner ${String(owner satisfies never)}`);
  }
}

const shown = (value: JsonValue): string => sanitize(typeof value === 'string' ? value : jsonBlock(value));

/** A session and its latest turn, as lines. */
export function statusLines(state: SessionState, style: Style, now: number, name: string, columns: number): string[] {
  const { meta, turn, owner } = state;
  const rows: [string, string][] = [['session', style.bold(sanitizeLine(meta.session_id))]];
  if (meta.title !== '') rows.push(['title', sanitizeLine(meta.title)]);
  if (turn === null) {
    rows.push(['turn', 'none yet'], ['messages', `${meta.message_count}, last change ${ago(meta.updated_at, now)}`]);
    return fields(rows, columns, style);
  }
  rows.push(['turn', sanitizeLine(turn.turn_id ?? '')], ['status', paintStatus(turn.status, style)]);
  if (meta.status_reason !== undefined && turn.status !== 'completed') rows.push(['reason', sanitize(meta.status_reason)]);
  rows.push(['model calls', `${turn.turn_count} of ${turn.max_turns} at most`]);
  if (turn.pending_function_calls.length > 0) {
    const approvals = isOver(turn) ? [] : [style.dim(`\`${name} approvals\` lists those that wait for you`)];
    rows.push(['waits for', [...turn.pending_function_calls.map((id) => `call ${sanitizeLine(id)}`), ...approvals].join('\n')]);
  }
  if (turn.children.length > 0) rows.push(['children', turn.children.map((child) => sanitizeLine(child.session_id)).join('\n')]);
  if (turn.depth > 0) rows.push(['depth', String(turn.depth)]);
  if (!isOver(turn)) rows.push(['run by', ownerText(owner, state, name)]);
  rows.push(['messages', `${meta.message_count}, last change ${ago(meta.updated_at, now)}`]);
  if (turn.result_error != null) rows.push(['error', style.red(sanitize(turn.result_error))]);
  if (turn.result !== undefined && turn.result !== null && turn.result !== '') rows.push(['result', shown(turn.result)]);
  return fields(rows, columns, style);
}

/** The same on one line, for watching. */
export function statusLine({ meta, turn, owner }: SessionState, style: Style): string {
  if (turn === null) return `${sanitizeLine(meta.session_id)}  no turn yet`;
  const pending = turn.pending_function_calls.length;
  const parts = [
    `${turn.turn_count} of ${turn.max_turns} model calls`,
    plural(meta.message_count, 'message'),
    ...(pending > 0 ? [plural(pending, 'pending call')] : []),
    ...(owner === 'gone' && !isOver(turn) ? ['its process is gone'] : []),
    ...(turn.result_error != null ? [cut(sanitizeLine(turn.result_error), 160)] : []),
  ];
  return `${paintStatus(turn.status, style)} · ${parts.join(' · ')}`;
}
