import type { JsonValue } from '#libs/contracts';

/** What stands where a secret is. */
export const HIDDEN = '[hidden]';

const SECRET = /(api|access|private|secret)[_-]?key|secret|passw|credential|authorization|(^|[_-])token$/i;

/** True for the name of a field whose text is a secret, such as `api_key`. */
export const isSecretName = (name: string): boolean => SECRET.test(name);

/** A copy of a value with `[hidden]` for every text in a field with the name of a secret. */
export function hideSecrets(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(hideSecrets);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      isSecretName(name) ? hideAll(inner as JsonValue) : hideSecrets(inner as JsonValue),
    ]),
  );
}

/** Hides every text below a secret's name, also in a list or a mapping. */
function hideAll(value: JsonValue): JsonValue {
  if (typeof value === 'string') return value === '' ? '' : HIDDEN;
  if (Array.isArray(value)) return value.map(hideAll);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, hideAll(inner as JsonValue)]));
}

/** The path of the first secret that is only its placeholder; null when there is none. */
export function placeholderIn(value: JsonValue, path = ''): string | null {
  if (value === HIDDEN) return path;
  if (typeof value !== 'object' || value === null) return null;
  for (const [name, inner] of Object.entries(value)) {
    const found = placeholderIn(inner as JsonValue, path === '' ? name : `${path}.${name}`);
    if (found !== null) return found;
  }
  return null;
}
