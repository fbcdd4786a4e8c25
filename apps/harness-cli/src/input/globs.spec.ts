import { describe, expect, it } from 'vitest';
import { globFault } from './globs.js';

describe('policy globs', () => {
  it.each(['*', 'coder::*', 'coder::read-file', '*::list', 'a*b*c', 'provider::gpt_5.1::stream'])('takes %j', (glob) => {
    expect(globFault(glob)).toBeNull();
  });

  it.each([
    ['', /empty/],
    ['**', /`\*\*`/],
    ['coder::**', /`\*\*`/],
    ['!coder::*', /`!`/],
    ['coder::[ab]', /`\[`/],
    ['coder::]', /`\]`/],
    ['{a,b}', /`\{`/],
    ['a}', /`\}`/],
    ['coder::read?', /`\?`/],
    ['a\nb', /newline/],
    ['a b', /space/],
    ['a\u0000b', /control/],
    ['a\u001bb', /control/],
    ['a\u00a0b', /space/],
    ['x'.repeat(257), /longer/],
  ])('refuses %j', (glob, reason) => {
    expect(globFault(glob)).toMatch(reason);
  });
});
