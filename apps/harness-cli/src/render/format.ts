import stringWidth from 'string-width';

/** `850 ms`, `1.3 s`, `2 min 5 s`, `1 h 3 min`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** `345`, `1.2k`, `3.4M`. */
export function count(n: number): string {
  if (n < 1000) return String(n);
  if (n < 999_950) return `${trim((n / 1000).toFixed(1))}k`;
  return `${trim((n / 1_000_000).toFixed(1))}M`;
}
const trim = (number: string): string => number.replace(/\.0$/, '');

/** `$0.0012`, `$1.25`. */
export function dollars(usd: number): string {
  if (usd > 0 && usd < 0.0001) return '<$0.0001';
  return `$${usd === 0 || usd >= 0.1 ? usd.toFixed(2) : usd.toPrecision(2)}`;
}

/** `512 B`, `12 MB`, `1.5 GB`; thousands, not 1024. */
export function bytes(n: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = n;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value >= 10 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit] ?? ''}`;
}

/** `1 step`, `3 steps`. */
export const plural = (n: number, word: string): string => `${n} ${word}${n === 1 ? '' : 's'}`;

/** How long ago: `just now`, `5 min ago`, `3 h ago`, `2 d ago`, then the date. Times are ms since the epoch. */
export function ago(then: number, now: number): string {
  const minutes = Math.floor((now - then) / 60_000);
  if (minutes < 1) return 'just now';
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  if (minutes < 14 * 24 * 60) return `${Math.floor(minutes / (24 * 60))} d ago`;
  return new Date(then).toISOString().slice(0, 10);
}

/** How many terminal columns a text takes. */
export const width = (text: string): number => stringWidth(text);

/** `text` cut to at most `columns` terminal columns, with an ellipsis when something is left out. */
export function cut(text: string, columns: number): string {
  if (columns <= 0) return '';
  if (width(text) <= columns) return text;
  let kept = '';
  let used = 1;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    const next = width(segment);
    if (used + next > columns) break;
    kept += segment;
    used += next;
  }
  return `${kept.trimEnd()}…`;
}

/** `text` filled with spaces to `columns` terminal columns. */
export const pad = (text: string, columns: number): string => text + ' '.repeat(Math.max(0, columns - width(text)));
