import type { TurnSpan, TurnSpans } from '#libs/local';
import { count, cut, dollars, duration, pad, width } from './format.js';
import { sanitizeLine } from './sanitize.js';
import { paintStatus } from './status.js';
import type { Style } from './style.js';

/** Columns where the terminal does not say, and at most. */
const COLUMNS = 120;
const MAX_COLUMNS = 180;
/** Least columns of the bars, and the largest part of a line that names take. */
const LEAST_BAR = 12;
const NAME_PART = 0.45;

/** A line of the waterfall before it is laid out. */
interface Row {
  span: TurnSpan;
  name: string;
  facts: readonly string[];
}

/** A turn as a waterfall: its spans under each other, each with a bar on the time axis, how long it took, tokens and cost. */
export function waterfall({ trace_id, session_id, status, spans }: TurnSpans, style: Style, columns: number): string[] {
  const root = spans[0];
  if (root === undefined) return [];
  const rows = rowsOf(spans, session_id);
  const total = Math.min(Number.isFinite(columns) ? columns : COLUMNS, MAX_COLUMNS);
  const facts = [0, 1, 2].map((column) => Math.max(...rows.map((row) => width(row.facts[column] ?? ''))));
  const taken = facts.reduce((sum, each) => sum + (each === 0 ? 0 : each + 2), 0);
  const longest = Math.max(...rows.map(({ name }) => width(name)));
  const names = Math.max(8, Math.min(longest, Math.floor(total * NAME_PART), total - taken - LEAST_BAR - 2));
  const bars = Math.max(LEAST_BAR, total - names - taken - 2);
  const end = Math.max(...spans.map((span) => span.end_ms));
  return [
    `${paintStatus(status, style)} ${style.dim(`· ${duration(end - root.start_ms)} · turn ${sanitizeLine(root.turn_id)} · trace ${sanitizeLine(trace_id)}`)}`,
    '',
    ...rows.map(({ span, name, facts: own }) => {
      const paint = painter(span, style);
      const shown = pad(cut(name, names), names);
      const bar = barOf(span, root.start_ms, end, bars);
      const cells = facts.flatMap((room, column) => (room === 0 ? [] : [(own[column] ?? '').padStart(room)]));
      return [span.error === null ? shown : style.red(shown), paint(bar), style.dim(cells.join('  '))].join('  ').trimEnd();
    }),
  ];
}

function rowsOf(spans: readonly TurnSpan[], sessionId: string): Row[] {
  const depths = new Map<string, number>();
  return spans.map((span, index) => {
    const depth = index === 0 ? 0 : (depths.get(span.parent_id ?? '') ?? 0) + 1;
    depths.set(span.span_id, depth);
    const whose = span.name === 'invoke_agent' && span.session_id !== sessionId ? ` ${span.session_id}` : '';
    const mark = span.error === null ? (span.open ? ' …' : '') : ` ✗ ${span.error}`;
    return { span, name: `${'  '.repeat(depth)}${sanitizeLine(`${span.name}${mark}${whose}`)}`, facts: factsOf(span) };
  });
}

/** How long, how many tokens in and out, what it cost. */
function factsOf({ start_ms, end_ms, attributes }: TurnSpan): string[] {
  const [input, output, cost] = ['gen_ai.usage.input_tokens', 'gen_ai.usage.output_tokens', 'harness.cost_usd'].map(
    (key) => attributes[key],
  );
  const tokens = typeof input === 'number' && typeof output === 'number' ? `${count(input)} → ${count(output)}` : '';
  return [duration(end_ms - start_ms), tokens, typeof cost === 'number' ? dollars(cost) : ''];
}

/** A bar between the begin and the end of a span, of `columns` in all; what is shorter than a column is a thin one. */
function barOf(span: TurnSpan, start: number, end: number, columns: number): string {
  const scale = columns / Math.max(end - start, 1e-6);
  const from = Math.min(columns - 1, Math.max(0, Math.floor((span.start_ms - start) * scale)));
  const length = Math.round((span.end_ms - span.start_ms) * scale);
  const shown = Math.min(length, columns - from);
  const bar = shown < 1 ? '▏' : (span.open ? '░' : '█').repeat(shown);
  return pad(`${' '.repeat(from)}${bar}`, columns);
}

function painter({ error, name }: TurnSpan, style: Style): (text: string) => string {
  if (error !== null) return (text) => style.red(text);
  if (name.startsWith('chat ')) return (text) => style.cyan(text);
  if (name.startsWith('execute_tool ')) return (text) => style.green(text);
  return (text) => style.dim(text);
}
