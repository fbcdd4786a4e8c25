import { describe, expect, it } from 'vitest';
import { compileGlobs } from './glob.js';

describe('compileGlobs', () => {
  it.each([
    ['*.ts', 'a.ts', true],
    ['*.ts', 'deep/in/a.ts', true],
    ['*.ts', 'a.tsx', false],
    ['src/*.ts', 'src/a.ts', true],
    ['src/*.ts', 'src/b/a.ts', false],
    ['src/**', 'src/b/a.ts', true],
    ['src/**/a.ts', 'src/a.ts', true],
    ['src/**/x/**/a.ts', 'src/1/x/2/3/a.ts', true],
    ['**/.env', '.env', true],
    ['**/.env', 'a/b/.env', true],
    ['/a.ts', 'a.ts', true],
    ['/a.ts', 'b/a.ts', false],
    ['a?c', 'abc', true],
    ['[!a-c]x', 'dx', true],
    ['[!a-c]x', 'bx', false],
    ['[]]', ']', true],
    ['{a,b}.{js,ts}', 'b.ts', true],
    ['{a,b}.{js,ts}', 'c.ts', false],
    ['{a', '{a', true],
    ['\\*.ts', '*.ts', true],
    ['\\*.ts', 'a.ts', false],
    ['*', 'x', true],
    ['a*b*c', 'a1b2c', true],
    ['a*b*c', 'a1b2', false],
  ])('%s on %s is %s', (glob, path, expected) => {
    expect(compileGlobs([glob])(path)).toBe(expected);
  });

  it('takes no longer for a glob that is made to be slow', () => {
    const began = performance.now();
    expect(compileGlobs([`${'*a'.repeat(60)}b`])('a'.repeat(4_000))).toBe(false);
    expect(compileGlobs([`${'**/a/'.repeat(60)}b`])('a/'.repeat(1_000))).toBe(false);
    expect(compileGlobs(['{a,b}'.repeat(30)])('c')).toBe(false);
    expect(performance.now() - began).toBeLessThan(500);
  });
});
