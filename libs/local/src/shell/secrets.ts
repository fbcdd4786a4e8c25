const SECRET_NAME = /(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$|(^|_)(PASS|PAT|AUTH|DSN)$/i;
/** Shorter values are too common to be looked for. */
const MIN_SECRET = 8;
const HIDDEN = '[hidden]';

/** What is secret in an environment: values whose name says so, and passwords in URLs. `known` names are the operator's to show. */
export function secretsOf(environment: NodeJS.ProcessEnv, known: readonly string[]): string[] {
  const secrets: string[] = [];
  for (const [name, value] of Object.entries(environment)) {
    if (value === undefined || known.includes(name)) continue;
    if (SECRET_NAME.test(name)) secrets.push(value);
    const password = value.includes('@') && URL.canParse(value) ? new URL(value).password : '';
    if (password !== '') secrets.push(password, decoded(password));
  }
  return secrets;
}

/**
 * A command's output without secrets: a command of the same user can read them from the system, and what it prints is stored and goes
 * to a model. Each is looked for as it is, in JSON, percent-encoded, in hex and in base64, also inside a longer text.
 */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  const forms = new Set(secrets.filter((secret) => secret.length >= MIN_SECRET).flatMap(formsOf));
  let clean = text;
  // A form that holds another one goes first, so that nothing of it is left.
  for (const form of [...forms].sort((a, b) => b.length - a.length)) clean = clean.replaceAll(form, HIDDEN);
  return clean;
}

function formsOf(secret: string): string[] {
  const hex = Buffer.from(secret).toString('hex');
  const base64 = [Buffer.from(secret).toString('base64').replace(/=+$/, ''), ...[0, 1, 2].map((shift) => base64Inside(secret, shift))];
  const urlSafe = base64.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'));
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), hex, hex.toUpperCase(), ...base64, ...urlSafe];
}

/** The part of the base64 of a longer text that a secret in it decides alone, when `shift` bytes stand before it in its group of three. */
function base64Inside(secret: string, shift: number): string {
  const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(secret)]);
  return bytes.toString('base64').slice(Math.ceil((shift * 8) / 6), Math.floor((bytes.length * 8) / 6));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // no percent-encoding after all
  }
}
