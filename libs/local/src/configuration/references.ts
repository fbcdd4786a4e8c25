const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::([^}]*))?\}/g;

/** Environment variables by name. */
export type Environment = { readonly [name: string]: string | undefined };

/** A text with its `${NAME:default}` references replaced, and the names that have neither a value nor a default. */
export function expandReferences(text: string, env: Environment): { text: string; missing: string[] } {
  const missing: string[] = [];
  const expanded = text.replace(REFERENCE, (_whole, name: string, fallback: string | undefined) => {
    const value = env[name] ?? fallback;
    if (value === undefined) missing.push(name);
    return value ?? '';
  });
  return { text: expanded, missing };
}

/** True when the text refers to the environment at all. */
export const hasReference = (text: string): boolean => text.search(REFERENCE) >= 0;

const NUMBER = /^[-+]?(?:\d+|\d*\.\d+|\d+\.)(?:[eE][-+]?\d+)?$/;

/** What an unquoted scalar with this text would be in YAML: so `${LIMIT:16}` is a number, as `16` is. */
export function plainScalar(text: string): string | number | boolean | null {
  const trimmed = text.trim();
  if (trimmed === '' || trimmed === '~' || /^null$/i.test(trimmed)) return null;
  if (/^true$/i.test(trimmed)) return true;
  if (/^false$/i.test(trimmed)) return false;
  return NUMBER.test(trimmed) ? Number(trimmed) : text;
}
