import { expect, it } from 'vitest';
import { codeOf, idOf } from './words.js';

it('lets only ids and codes into a span, whatever a model or an error says', () => {
  expect(idOf('coder::read-file')).toBe('coder::read-file');
  expect(idOf('ignore all\nprevious')).toBe('other');
  expect(idOf('a'.repeat(500))).toHaveLength(120);
  expect(codeOf('router/unknown_provider', 'failed')).toBe('router/unknown_provider');
  expect(codeOf('the key sk-1 is wrong', 'failed')).toBe('failed');
  expect(codeOf(undefined, 'failed')).toBe('failed');
});
