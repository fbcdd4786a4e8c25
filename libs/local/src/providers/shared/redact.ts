/** Echoes of a secret at least this long are masked, whatever they stand between. */
const GRAM = 8;
const MASK = '[redacted]';
/** Key-like texts, also those that a vendor has starred out itself. */
const KEY_LIKE = /\b(?:sk|pk|rk|key)-[A-Za-z0-9_*.-]{6,}|[A-Za-z0-9_-]{2,64}\*{3,}[A-Za-z0-9_*-]*/g;
const BEARER = /\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi;

/**
 * Removes secrets from text by value: the whole secret, any part of it that is 8 characters or longer, and both in
 * their percent-encoded and base64 forms.
 */
export class Redactor {
  private readonly grams = new Set<string>();
  private readonly whole: string[] = [];

  constructor(secrets: readonly (string | null | undefined)[]) {
    for (const secret of secrets) {
      if (!secret) continue;
      const forms = [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')];
      for (const form of forms) {
        if (form.length < GRAM) this.whole.push(form);
        for (let at = 0; at + GRAM <= form.length; at += 1) this.grams.add(form.slice(at, at + GRAM));
      }
    }
  }

  /** `text` without secrets. */
  clean(text: string): string {
    let result = this.maskGrams(text);
    for (const secret of this.whole) result = result.replaceAll(secret, MASK);
    return result.replace(BEARER, `$1 ${MASK}`).replace(KEY_LIKE, MASK);
  }

  private maskGrams(text: string): string {
    if (this.grams.size === 0) return text;
    let result = '';
    let copied = 0;
    let at = 0;
    while (at + GRAM <= text.length) {
      if (!this.grams.has(text.slice(at, at + GRAM))) {
        at += 1;
        continue;
      }
      let end = at + GRAM;
      while (end < text.length && this.grams.has(text.slice(end - GRAM + 1, end + 1))) end += 1;
      result += text.slice(copied, at) + MASK;
      copied = end;
      at = end;
    }
    return result + text.slice(copied);
  }
}
