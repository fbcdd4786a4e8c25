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
