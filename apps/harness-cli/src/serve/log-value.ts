/** How deep a context is shown, and how much of a list. */
const MAX_DEPTH = 6;
const MAX_ITEMS = 100;

/**
 * A value of a log's context as plain data, each text in it passed through `clean`: keys, values, and what errors say, with those that
 * caused them. Of an error its other properties are left out: they may hold whole requests.
 */
export function logValue(value: unknown, clean: (text: string) => string, depth = 0): unknown {
  switch (typeof value) {
    case 'string':
      return clean(value);
    case 'number':
    case 'boolean':
    case 'undefined':
      return value;
    case 'object':
      break;
    default:
      return clean(String(value));
  }
  if (value === null) return null;
  if (depth >= MAX_DEPTH) return '…';
  if (value instanceof Error) return logError(value, clean, depth);
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((item) => logValue(item, clean, depth + 1));
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  if (value instanceof URL || value instanceof Date) return clean(value instanceof URL ? value.href : value.toISOString());
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [clean(key), logValue(item, clean, depth + 1)]));
}

function logError(error: Error, clean: (text: string) => string, depth: number): unknown {
  const { code } = error as { code?: unknown };
  const causes = error instanceof AggregateError ? error.errors : error.cause === undefined ? [] : [error.cause];
  const message = clean(error.message);
  if (causes.length === 0 && code === undefined) return message;
  return {
    message,
    ...(typeof code === 'string' || typeof code === 'number' ? { code: logValue(code, clean) } : {}),
    ...(causes.length === 0 ? {} : { cause: logValue(causes.length === 1 ? causes[0] : causes, clean, depth + 1) }),
  };
}
