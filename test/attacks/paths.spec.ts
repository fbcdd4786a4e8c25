import { execFileSync } from 'node:child_process';
import { linkSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { failure } from '../../libs/local/src/confine/test/app.js';
import { type Arena, openArena, SECRET } from './support/arena.js';

let arena: Arena;
beforeAll(async () => {
  arena = await openArena();
  symlinkSync(arena.outside, join(arena.root, 'away'));
  symlinkSync(join(arena.outside, 'a.txt'), join(arena.root, 'away.txt'));
  symlinkSync(join(arena.outside, 'none.txt'), join(arena.root, 'dangling'));
  symlinkSync('loop', join(arena.root, 'loop'));
  symlinkSync('/proc/self', join(arena.root, 'self'));
});
afterAll(() => arena.close());

const call = <T = unknown>(fn: string, payload: object): Promise<T> => arena.app.call<T>(fn, payload);

describe('a path', () => {
  it.each([
    '../root-outside/a.txt',
    'flip/../../root-outside/a.txt',
    'away/a.txt',
    'away.txt',
    'away/../root-outside/a.txt',
    './/..//root-outside//a.txt',
    'loop',
    'self/environ',
    'self/root/etc/passwd',
    '/etc/passwd',
    '/proc/self/environ',
    '/proc/self/cwd/package.json',
    '/proc/thread-self/fd/0',
    '//etc/passwd',
    'a.txt\0.png',
    '~/.ssh/id_rsa',
    'file:///etc/passwd',
    'data/a.txt',
    'flip/../data/a.txt',
  ])('%s reads nothing outside the root', async (path) => {
    const real = path.startsWith('..') ? path : path.replace('root-outside', arena.outside.split('/').at(-1) ?? '');
    expect(await failure(call('coder::read-file', { path: real }))).toMatch(/^C21[01]: /);
    expect(await failure(call('coder::read-file', { path: join(arena.root, 'none', '..', real) }))).toMatch(/^C21[01]: /);
  });

  it.each([
    '../new.txt',
    'away/new.txt',
    'away.txt',
    'dangling',
    'away/x/y/new.txt',
    'data/new.txt',
    'data/x/new.txt',
    '/tmp/new-of-attack.txt',
  ])('%s writes nothing outside the root', async (path) => {
    const before = [arena.outside, arena.closed].map((folder) => readdirSync(folder));
    const { results } = await call<{ results: { success: boolean }[] }>('coder::create-file', {
      files: [{ path, content: 'x', overwrite: true }],
    });
    expect(results).toMatchObject([{ success: false }]);
    expect([arena.outside, arena.closed].map((folder) => readdirSync(folder))).toEqual(before);
    expect(readFileSync(join(arena.outside, 'a.txt'), 'utf8')).toContain(SECRET);
    expect(() => lstatSync('/tmp/new-of-attack.txt')).toThrow('ENOENT');
  });

  it('of a search shows nothing of what links lead to', async () => {
    const found = await call<{ content_matches: unknown[] }>('coder::search', { query: SECRET });
    expect(found.content_matches).toEqual([]);
    expect(await failure(call('coder::search', { query: 'x', path: 'away' }))).toMatch(/^C211: /);
    expect(await failure(call('coder::tree', { path: 'away' }))).toMatch(/^C211: /);
  });
});

describe('files that may not be read', () => {
  it('are not uncovered by narrowing the call to their folder', async () => {
    mkdirSync(join(arena.root, 'keys'));
    writeFileSync(join(arena.root, 'keys', 'main.txt'), SECRET);
    const globs = arena.app.values.non_accessible_globs;
    arena.app.values.non_accessible_globs = ['keys/**'];
    try {
      for (const fs_scope of [undefined, { root: 'keys', boundary: 'workspace' }, { root: 'keys', boundary: 'configured_roots' }]) {
        const path = fs_scope === undefined ? 'keys/main.txt' : 'main.txt';
        expect(await failure(call('coder::read-file', { path, fs_scope }))).toMatch(/^C211: /);
        const found = await call<{ content_matches: unknown[] }>('coder::search', { query: SECRET, fs_scope });
        expect(found.content_matches).toEqual([]);
      }
    } finally {
      arena.app.values.non_accessible_globs = globs;
    }
  });

  it('are not uncovered by a link or a pair of dots', async () => {
    writeFileSync(join(arena.root, '.env'), SECRET);
    symlinkSync('.env', join(arena.root, 'plain.txt'));
    for (const path of ['.env', 'plain.txt', 'flip/../.env', join(arena.root, '.env')])
      expect(await failure(call('coder::read-file', { path }))).toMatch(/^C211: /);
  });
});

describe('what is written', () => {
  it('never runs as another user', async () => {
    expect(await failure(call('coder::create-file', { files: [{ path: 'run', content: '#!/bin/sh\n', mode: '4755' }] }))).toMatch(
      /^C210: .*mode/,
    );
    writeFileSync(join(arena.root, 'setuid'), 'old\n');
    execFileSync('chmod', ['6755', join(arena.root, 'setuid')]);
    await call('coder::update-file', {
      files: [{ path: 'setuid', ops: [{ op: 'update_lines', from_line: 1, to_line: 1, content: 'new' }] }],
    });
    expect(readFileSync(join(arena.root, 'setuid'), 'utf8')).toBe('new\n');
    expect((lstatSync(join(arena.root, 'setuid')).mode & 0o7777).toString(8)).toBe('755');
  });

  it('does not reach what a second name of the file holds', async () => {
    linkSync(join(arena.outside, 'a.txt'), join(arena.root, 'hard.txt'));
    await call('coder::create-file', { files: [{ path: 'hard.txt', content: 'x', overwrite: true }] });
    expect(readFileSync(join(arena.outside, 'a.txt'), 'utf8')).toBe(`${SECRET}\n`);
  });

  it('takes names as long as the disk does', async () => {
    const path = '漢'.repeat(85);
    expect(await call('coder::create-file', { files: [{ path, content: 'x' }] })).toMatchObject({ results: [{ success: true }] });
  });
});
