const SECRET_NAME = /(_API_KEY|_TOKEN|_SECRET|_PASSWORD|_CREDENTIALS?)$/;

/** `text` without the values of environment variables that hold a secret, nor a long prefix of one. */
export function redact(text: string, env: NodeJS.ProcessEnv): string {
  let safe = text;
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined || value.length < 8 || !SECRET_NAME.test(name)) continue;
    safe = safe.replaceAll(value, `[${name}]`);
    const prefix = value.slice(0, Math.max(12, Math.ceil(value.length / 2)));
    if (value.length >= 16) safe = safe.replaceAll(prefix, `[${name}]`);
  }
  return safe.replace(/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}/g, '$1 [redacted]');
}
