import type { TreeNode } from '../turn/tree.js';
import { count, cut, dollars, plural, width } from './format.js';
import { sanitizeLine } from './sanitize.js';
import { paintStatus } from './status.js';
import type { Style } from './style.js';

/** Least columns that are worth a title. */
const TITLE_COLUMNS = 12;

/** A tree of sessions, a line each. */
export function treeLines(node: TreeNode, style: Style, columns: number, before = '', branch = '', after = ''): string[] {
  const { session_id, title, status, turns, calls, input_tokens, output_tokens, cost_usd } = node;
  const facts = [
    plural(turns, 'turn'),
    plural(calls, 'call'),
    `${count(input_tokens)} in / ${count(output_tokens)} out tokens`,
    ...(cost_usd === null ? [] : [dollars(cost_usd)]),
  ].join(' · ');
  const id = sanitizeLine(session_id);
  const room = columns - width(`${before}${branch}${id} ${status} · ${facts}`) - 3;
  const named = title === '' || room < TITLE_COLUMNS ? '' : `  ${cut(sanitizeLine(title), Math.min(room, 80))}`;
  const line = `${style.dim(before + branch)}${style.bold(id)} ${paintStatus(status, style)}${style.dim(` · ${facts}${named}`)}`;
  const below = node.children.flatMap((child, index) => {
    const isLast = index === node.children.length - 1;
    return treeLines(child, style, columns, before + after, isLast ? '└─ ' : '├─ ', isLast ? '   ' : '│  ');
  });
  return [line, ...below];
}
