import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonLine, StreamSanitizer, sanitize, sanitizeLine } from './sanitize.js';

const LIVE = /(?![\t\n])\p{Cc}|[\u202a-\u202e\u2066-\u2069\p{Zl}\p{Zp}\p{Cs}]/u;

describe('C52 text for a terminal', () => {
  it.each([
    ['\u001b[2J', '␛[2J'],
    ['\u001b]52;c;aGk=\u0007', '␛]52;c;aGk=␇'],
    ['safe\rFAKE', 'safe␍FAKE'],
    ['a\r\nb\tc\n', 'a\nb\tc\n'],
    ['\u009b31m', '\\u{9B}31m'],
    ['pay \u202eeur 01', 'pay \\u{202E}eur 01'],
    ['\u007f\u0000', '␡␀'],
    ['👩‍👩‍👧 ok \ud83d', '👩‍👩‍👧 ok \ufffd'],
  ])('shows %j inert', (text, shown) => {
    expect(sanitize(text)).toBe(shown);
  });

  it('lets no control character through, however the text is cut', () => {
    const text = fc
      .array(fc.constantFrom('\u001b', '[2J', '\r', '\n', 'é', '👍', '\ud83d', '\udc4d', '\u202e', '\u0007', 'x', '\u009b'))
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, fc.array(fc.nat(20), { maxLength: 6 }), (whole, cuts) => {
        const stream = new StreamSanitizer();
        let shown = '';
        let rest = whole;
        for (const cut of cuts) {
          shown += stream.push(rest.slice(0, cut));
          rest = rest.slice(cut);
        }
        shown += stream.push(rest) + stream.end();
        expect(shown).not.toMatch(LIVE);
        expect(shown).toBe(sanitize(whole));
      }),
    );
  });

  it('makes one line of several', () => {
    expect(sanitizeLine('  a\n\n b\u001b ')).toBe('a b␛');
  });

  it('escapes what JSON leaves live, and keeps the value', () => {
    const value = { text: '\u009b2J\u2028\u202e\u001b\u007f"\n' };
    const line = jsonLine(value);
    expect(line).not.toMatch(LIVE);
    expect(line).not.toContain('\n');
    expect(JSON.parse(line)).toEqual(value);
  });
});
