import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ContentBlock } from '#libs/contracts';
import { cleanContent, cut, headOf, tailOf, userText, wellFormed, wellFormedJson } from './text.js';

const anyText = fc.string({ unit: 'binary', maxLength: 30 });

describe('well-formed text', () => {
  it('replaces halves of surrogate pairs and nothing else', () => {
    expect(wellFormed('a\ud83db😀')).toBe('a\ufffdb😀');
    expect(wellFormedJson({ 'k\udc00': ['\ud800', { x: '😀' }], n: 1, z: null })).toEqual({
      'k\ufffd': ['\ufffd', { x: '😀' }],
      n: 1,
      z: null,
    });
    expect(userText('\ud800', 3)).toEqual({ role: 'user', content: [{ type: 'text', text: '\ufffd' }], timestamp: 3 });
  });
});

describe('cuts', () => {
  it('fall on code points and keep the length', () => {
    fc.assert(
      fc.property(anyText, fc.nat(40), (given, max) => {
        const text = wellFormed(given);
        for (const part of [headOf(text, max), tailOf(text, max), cut(text, max + 1)]) {
          expect(part.isWellFormed()).toBe(true);
          expect(part.length).toBeLessThanOrEqual(max + 1);
        }
        expect(text.startsWith(headOf(text, max))).toBe(true);
        expect(text.endsWith(tailOf(text, max))).toBe(true);
        expect(headOf(text, max).length).toBeGreaterThanOrEqual(Math.min(max, text.length) - 1);
      }),
    );
  });
  it('leave short texts alone and mark long ones', () => {
    expect(cut('hello', 5)).toBe('hello');
    expect(cut('hello!', 5)).toBe('hell…');
    expect(cut('abc😀d', 5)).toBe('abc…');
    expect([headOf('ab', 9), tailOf('ab', 9), headOf('ab', 0), tailOf('ab', 0)]).toEqual(['ab', 'ab', '', '']);
  });
});

describe('cleanContent', () => {
  it('C17 leaves out blank texts, in results too', () => {
    const content: ContentBlock[] = [
      { type: 'text', text: ' \n' },
      { type: 'text', text: 'x\ud800' },
      { type: 'function_result', function_call_id: 'a', content: [{ type: 'text', text: '' }] },
    ];
    expect(cleanContent(content)).toEqual([
      { type: 'text', text: 'x\ufffd' },
      { type: 'function_result', function_call_id: 'a', content: [] },
    ]);
  });
  it('C16 leaves signed thinking as it is, byte for byte', () => {
    const signed: ContentBlock = { type: 'thinking', text: 'a\ud800', signature: 's' };
    expect(cleanContent([signed])[0]).toBe(signed);
    expect(cleanContent([{ type: 'thinking', text: 'a\ud800' }])).toEqual([{ type: 'thinking', text: 'a\ufffd' }]);
  });
  it('makes names and arguments of calls well-formed', () => {
    expect(cleanContent([{ type: 'function_call', id: 'a', function_id: 'f\ud800', arguments: { x: '\udfff' } }])).toEqual([
      { type: 'function_call', id: 'a', function_id: 'f\ufffd', arguments: { x: '\ufffd' } },
    ]);
  });
});
