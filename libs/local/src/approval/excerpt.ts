import type { JsonValue } from '#libs/contracts';
import { HIDDEN, hideSecrets, isSecretName } from '../configuration/redact.js';
import { Redactor } from '../providers/shared/redact.js';

/** How much of a value is kept: characters in all and of one text, items of one list, levels. */
interface Bounds {
  total: number;
  text: number;
  items: number;
  depth: number;
}
/** What may be forwarded to whoever is told of a pending call. */
const EXCERPT: Bounds = { total: 2_000, text: 400, items: 20, depth: 6 };
/** What the person who decides is shown. */
const WHOLE: Bounds = { total: 65_536, text: 32_768, items: 1_000, depth: 32 };
/** Values of environment variables that are shorter are no secrets that could be told from other text. */
const SHORTEST_SECRET = 8;

/** Arguments for whoever is told: cut short, without the values of secrets, what looks like one, and what stands in fields named like one. */
export function excerptOf(args: JsonValue, secrets: readonly string[]): JsonValue {
  const redactor = new Redactor(secrets);
  return mapTexts(hideSecrets(bounded(args, EXCERPT)), (text) => redactor.clean(text));
}

/** Arguments for the person who decides, up to 64 kB: all but the values of secrets, since what only looks like one may be what matters. */
export function shownTo(args: JsonValue, secrets: readonly string[]): JsonValue {
  const values = secrets.filter((secret) => secret.length >= SHORTEST_SECRET);
  return mapTexts(bounded(args, WHOLE), (text) => values.reduce((all, secret) => all.replaceAll(secret, HIDDEN), text));
}

/** The values of environment variables with the name of a secret. */
export const environmentSecrets = (env: NodeJS.ProcessEnv): string[] =>
  Object.entries(env).flatMap(([name, value]) =>
    value !== undefined && value.length >= SHORTEST_SECRET && isSecretName(name) ? [value] : [],
  );

function mapTexts(value: JsonValue, map: (text: string) => string): JsonValue {
  if (typeof value === 'string') return map(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, map));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [map(name), mapTexts(inner as JsonValue, map)]));
}

/** A copy that is no larger than its bounds; what is left out is said where it was. */
function bounded(value: JsonValue, bounds: Bounds): JsonValue {
  const left = { total: bounds.total };
  const visit = (node: JsonValue, depth: number): JsonValue => {
    if (typeof node === 'string') {
      const kept = cut(node, Math.min(bounds.text, left.total));
      left.total -= kept.length;
      return kept === node ? node : `${kept}… (${node.length} characters)`;
    }
    if (typeof node !== 'object' || node === null) {
      left.total -= 4;
      return node;
    }
    if (depth >= bounds.depth) return '…';
    const entries = Object.entries(node) as [string, JsonValue][];
    const kept: [string, JsonValue][] = [];
    for (const [name, inner] of entries) {
      if (kept.length >= bounds.items || left.total <= 0) break;
      const label = cut(name, bounds.text);
      if (!Array.isArray(node)) left.total -= label.length;
      kept.push([label, visit(inner, depth + 1)]);
    }
    const more = entries.length - kept.length;
    if (Array.isArray(node)) return [...kept.map(([, inner]) => inner), ...(more > 0 ? [`… ${more} more`] : [])];
    return Object.fromEntries(more > 0 ? [...kept, ['…', `${more} more`]] : kept);
  };
  return visit(value, 0);
}

/** The first `length` characters, never half of a surrogate pair. */
const cut = (text: string, length: number): string => {
  if (text.length <= length) return text;
  const code = text.charCodeAt(length - 1);
  return text.slice(0, Math.max(0, code >= 0xd800 && code <= 0xdbff ? length - 1 : length));
};
