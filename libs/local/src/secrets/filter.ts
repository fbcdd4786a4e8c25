import { Redactor } from '../providers/shared/redact.js';
import { secretsOf, withoutSecrets } from '../shell/secrets.js';

/** Shorter values are too common to be looked for. */
const MIN_SECRET = 6;
/** A key in one piece, no path and no address: of it, any part is looked for; of anything else only the whole, since its parts may be words. */
const KEY = /^(?![./~])[\w.~+/=-]{6,512}$/;

/**
 * Takes every secret that the process knows out of texts, by value: the environment's (by the names of variables, passwords in
 * addresses, headers for collectors), and what `more` gives at that moment. Texts that look like keys go as well.
 */
export class SecretFilter {
  private readonly fromEnv: readonly string[];
  private secrets: readonly string[] = [];
  private redactor = new Redactor([]);
  private key: string | null = null;

  constructor(
    env: NodeJS.ProcessEnv,
    private readonly more: () => readonly string[],
  ) {
    this.fromEnv = [...secretsOf(env, []), ...headerValues(env)];
  }

  /** `text` without secrets. */
  clean(text: string): string {
    this.renew();
    return this.redactor.clean(withoutSecrets(text, this.secrets));
  }

  private renew(): void {
    const more = this.more();
    const key = more.join('\n');
    if (key === this.key) return;
    this.key = key;
    this.secrets = [...new Set([...this.fromEnv, ...more])].filter((secret) => secret.length >= MIN_SECRET);
    this.redactor = new Redactor(this.secrets.filter((secret) => KEY.test(secret)));
  }
}

/** What `OTEL_EXPORTER_OTLP_HEADERS` and its kin give to a collector. */
function headerValues(env: NodeJS.ProcessEnv): string[] {
  return Object.entries(env).flatMap(([name, value = '']) => {
    if (!/^OTEL_EXPORTER_OTLP_(\w+_)?HEADERS$/.test(name)) return [];
    return value.split(',').flatMap((header) => {
      const given = header.slice(header.indexOf('=') + 1).trim();
      return [given, decoded(given)];
    });
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // no percent-encoding after all
  }
}
