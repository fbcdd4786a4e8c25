// C0 except \t and \n, DEL, C1, lone surrogates, bidi embeddings, overrides and isolates, line and paragraph separators.
const LIVE = /(?![\t\n])\p{Cc}|[\u202a-\u202e\u2066-\u2069\p{Zl}\p{Zp}\p{Cs}]/gu;

function inert(char: string): string {
  const code = char.codePointAt(0) ?? 0xfffd;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  if (code >= 0xd800 && code <= 0xdfff) return '\ufffd';
  return `\\u{${code.toString(16).toUpperCase()}}`;
}

/**
 * Text of a model, a function or a session, made safe for a terminal: control characters other than tab and newline, and
 * those that reorder text, are shown and do nothing. `\r\n` counts as a newline.
 */
export const sanitize = (text: string): string => text.replaceAll('\r\n', '\n').replace(LIVE, inert);

/** The same on one line: runs of white space become one space. */
export const sanitizeLine = (text: string): string => sanitize(text.replace(/\s+/gu, ' ').trim());

/**
 * `sanitize` for text that comes in pieces. Since each control character is made inert by itself, a sequence that is cut
 * in two cannot get through; only `\r\n` and surrogate pairs are held back until their other half is there.
 */
export class StreamSanitizer {
  private held = '';

  /** The printable part of what has come so far. */
  push(delta: string): string {
    const text = this.held + delta;
    const last = text.charCodeAt(text.length - 1);
    const keep = last === 0x0d || (last >= 0xd800 && last <= 0xdbff) ? 1 : 0;
    this.held = text.slice(text.length - keep);
    return sanitize(text.slice(0, text.length - keep));
  }

  /** What was held back, at the end of the text. */
  end(): string {
    const rest = sanitize(this.held);
    this.held = '';
    return rest;
  }
}

// What JSON leaves as it is although a terminal may act on it.
const LIVE_IN_JSON = /(?!\n)\p{Cc}|[\u202a-\u202e\u2066-\u2069\p{Zl}\p{Zp}]/gu;
const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** One line of JSON in which no character can act on a terminal or end the line; it parses to the same value. */
export const jsonLine = (value: unknown): string => JSON.stringify(value).replace(LIVE_IN_JSON, escaped);

/** `jsonLine` over several lines, for people. */
export const jsonBlock = (value: unknown): string => JSON.stringify(value, null, 2).replace(LIVE_IN_JSON, escaped);
