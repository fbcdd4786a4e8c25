const ALLOWED = new Set(['PATH', 'HOME', 'LANG', 'TERM', 'TZ', 'TMPDIR', 'USER', 'LOGNAME', 'SHELL']);
/** What Windows programs cannot start without. */
const ALLOWED_WINDOWS = new Set([
  'SYSTEMROOT',
  'WINDIR',
  'COMSPEC',
  'PATHEXT',
  'TEMP',
  'TMP',
  'USERPROFILE',
  'APPDATA',
  'LOCALAPPDATA',
  'PATH',
]);

/**
 * The environment of a command: what programs need from ours, the names that an operator adds, and what the request gives.
 * Keys and tokens of this process are not among them.
 */
export function commandEnvironment(
  own: NodeJS.ProcessEnv,
  extraNames: readonly string[],
  given: { [name: string]: string },
  platform: NodeJS.Platform = process.platform,
): { [name: string]: string } {
  const extra = new Set(extraNames);
  const kept: { [name: string]: string } = {};
  for (const [name, value] of Object.entries(own)) {
    if (value === undefined) continue;
    const allowed =
      ALLOWED.has(name) || name.startsWith('LC_') || extra.has(name) || (platform === 'win32' && ALLOWED_WINDOWS.has(name.toUpperCase()));
    if (allowed) kept[name] = value;
  }
  return { ...kept, ...given };
}

const SECRET_NAME = /(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$/i;
/** Shorter values are too common to be looked for. */
const MIN_SECRET = 8;

/**
 * A command's output without the secrets of this process: a command of the same user can read them from the system, and what it
 * prints is stored and goes to a model. Looks for each value as it is and in base64; `known` names are the operator's to show.
 */
export function withoutSecrets(text: string, own: NodeJS.ProcessEnv, known: readonly string[]): string {
  let clean = text;
  for (const [name, value] of Object.entries(own)) {
    if (value === undefined || value.length < MIN_SECRET || !SECRET_NAME.test(name) || known.includes(name)) continue;
    clean = clean.replaceAll(value, '[hidden]').replaceAll(Buffer.from(value).toString('base64').replace(/=+$/, ''), '[hidden]');
  }
  return clean;
}
