import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { confineDefaults, Scope } from '../../confine/index.js';
import { failure, longestBlock, startApp, type TestApp } from '../../confine/test/app.js';
import { CoderModule } from '../coder.module.js';
import { IgnoreFile } from './gitignore.js';
import { type SearchResult, search as searchDirect } from './search.js';
import { excerpt } from './search-file.js';

let app: TestApp;
const put = async (path: string, content: string | Buffer): Promise<void> => {
  const whole = join(app.root, path);
  await mkdir(join(whole, '..'), { recursive: true });
  await writeFile(whole, content);
};
const search = (payload: object): Promise<SearchResult> => app.call<SearchResult>('coder::search', payload);
const paths = (result: SearchResult): string[] => result.content_matches.map((m) => `${m.path}:${m.line}`);

beforeAll(async () => {
  app = await startApp(CoderModule);
  await put('src/a.ts', 'import x\nconst needle = 1;\r\n// Needle again\nlast\n');
  await put('src/deep/b.ts', 'ß needle\n');
  await put('src/needle.md', 'nothing here\n');
  await put('node_modules/p/index.js', 'needle\n');
  await put('.env', 'needle=1\n');
  await put('bin.dat', Buffer.concat([Buffer.from('needle\n'), Buffer.from([0])]));
  await symlink('/etc', join(app.root, 'etc'));
});
afterAll(() => app.close());

describe('coder::search', () => {
  it('finds text in lines and names, and leaves out binaries, hidden files, links and tool folders', async () => {
    const result = await search({ query: 'needle' });
    expect(result).toMatchObject({ path: app.root, truncated: false });
    expect(result.content_matches).toEqual([
      { path: 'src/a.ts', line: 2, column: 7, text: 'const needle = 1;' },
      { path: 'src/deep/b.ts', line: 1, column: 3, text: 'ß needle' },
    ]);
    expect(result.path_matches).toEqual([{ path: 'src/needle.md', kind: 'file' }]);
    expect(paths(await search({ query: 'needle', use_default_excludes: false }))).toContain('node_modules/p/index.js:1');
    expect((await search({ query: 'src' })).path_matches).toEqual([{ path: 'src', kind: 'dir' }]);
  });

  it('takes case, patterns, globs, context and limits into account', async () => {
    expect(paths(await search({ query: 'NEEDLE', ignore_case: true }))).toEqual(['src/a.ts:2', 'src/a.ts:3', 'src/deep/b.ts:1']);
    expect(paths(await search({ query: '(?i)needle\\b.*;$', regex: true }))).toEqual(['src/a.ts:2']);
    expect(paths(await search({ query: 'needle', include_globs: ['**/deep/*.ts'] }))).toEqual(['src/deep/b.ts:1']);
    expect(paths(await search({ query: 'needle', exclude_globs: ['deep'] }))).toEqual(['src/a.ts:2']);
    expect(paths(await search({ query: 'needle', path: 'src/deep' }))).toEqual(['b.ts:1']);
    expect((await search({ query: 'Needle again', context_lines_before: 2, context_lines_after: 5 })).content_matches[0]).toMatchObject({
      before: ['import x', 'const needle = 1;'],
      after: ['last'],
    });
    expect(await search({ query: 'e', max_matches: 1, search_paths: false })).toMatchObject({
      truncated: true,
      content_matches: [{ path: 'src/a.ts' }],
    });
    expect(await search({ query: 'needle', search_content: false })).toMatchObject({
      content_matches: [],
      path_matches: [{ path: 'src/needle.md' }],
    });
    expect((await search({ query: 'sdb', fuzzy_paths: true, search_content: false })).path_matches[0]).toEqual({
      path: 'src/deep/b.ts',
      kind: 'file',
    });
  });

  it('takes a query as it stands unless it is a pattern', async () => {
    await put('odd.txt', 'a.*(b)[c]\\d $x^ {1} | - /\n');
    for (const query of ['a.*(b)[c]\\d', '$x^ {1} | - /']) {
      expect(paths(await search({ query }))).toEqual(['odd.txt:1']);
      expect(paths(await search({ query, ignore_case: true }))).toEqual(['odd.txt:1']);
    }
  });

  it('gives context across chunks of a file', async () => {
    await put('chunks/c.txt', Array.from({ length: 40_000 }, (_, i) => `line ${i} ${i % 3_001 === 3_000 ? 'HIT' : ''}`).join('\n'));
    const result = await search({ query: 'HIT', path: 'chunks', context_lines_before: 3, context_lines_after: 3 });
    expect(result.content_matches.length).toBe(13);
    for (const match of result.content_matches) {
      const n = match.line - 1;
      expect(match.before).toEqual([n - 3, n - 2, n - 1].map((i) => `line ${i} `));
      expect(match.after).toEqual([n + 1, n + 2, n + 3].filter((i) => i < 40_000).map((i) => `line ${i} `));
    }
  });

  it.each([
    [{ query: '[open', regex: true }, 'not valid RE2'],
    [{ query: '' }, 'query'],
    [{}, 'query is missing'],
    [{ query: 'a', path: '../' }, 'outside'],
    [{ query: 'a', path: 'etc' }, 'outside'],
    [{ query: 'a', path: 'odd.txt' }, 'not a folder'],
  ])('refuses %j', async (payload, why) => {
    expect(await failure(search(payload))).toMatch(new RegExp(`^C21[01]: .*${why}`));
  });

  it('stays bounded in time, answer and event loop on hostile input', async () => {
    await put('hostile/aaa.txt', `${'a'.repeat(900_000)}!\n`.repeat(3));
    await put('hostile/one-line.js', 'x'.repeat(5_000_000));
    let result: SearchResult | undefined;
    const blocked = await longestBlock(async () => {
      result = await search({ query: '(a+)+$', regex: true, path: 'hostile' });
    });
    expect(blocked).toBeLessThan(100);
    expect(result).toMatchObject({ truncated: true, content_matches: [] });
    const blockedByStates = await longestBlock(async () => {
      // Many states of a pattern make it slow even where time is linear; it ends by its limit or by itself.
      await search({ query: '([a-z]{0,90}){0,11}[0-9]', regex: true, path: 'hostile' }).catch((error: unknown) =>
        expect(String(error)).toMatch(/C210: query took/),
      );
    });
    expect(blockedByStates).toBeLessThan(100);
    const matches = await search({ query: 'a', path: 'hostile', search_paths: false });
    expect(Buffer.byteLength(JSON.stringify(matches))).toBeLessThan(140_000);
    expect(matches.content_matches[0]?.text).toContain('[line of 900001 bytes]');
  });

  it('bounds the whole text of an answer', async () => {
    await put('wide/w.txt', `${'match '.repeat(80)}\n`.repeat(900));
    const result = await search({ query: 'match', path: 'wide', context_lines_before: 2 });
    expect(result.truncated).toBe(true);
    expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThan(200_000);
  });

  it('ends at its deadline with what it has, and at once when the caller gives up', async () => {
    const scope = await Scope.open({ ...confineDefaults, root: '/' });
    const result = await searchDirect(scope, confineDefaults, { query: 'surely-not-there-0f3a' }, new AbortController().signal, 150);
    expect(result).toMatchObject({ truncated: true, truncated_reason: expect.stringContaining('150 ms') as string });
    const controller = new AbortController();
    const running = searchDirect(scope, confineDefaults, { query: 'surely-not-there-0f3a' }, controller.signal);
    setTimeout(() => controller.abort(), 30);
    const began = performance.now();
    await expect(running).rejects.toThrow();
    expect(performance.now() - began).toBeLessThan(1_000);
  });

  it('passes over what it may not read', async () => {
    await put('locked/inner/x.txt', 'needle');
    await put('locked/y.txt', 'needle');
    await chmod(join(app.root, 'locked', 'inner'), 0);
    const found = paths(await search({ query: 'needle', path: 'locked' }));
    await chmod(join(app.root, 'locked', 'inner'), 0o755);
    expect(found).toContain('y.txt:1');
  });
});

describe('.gitignore', () => {
  const rules = [
    '# comment',
    '*.log',
    '!keep.log',
    '/top.txt',
    'build/',
    'docs/*.pdf',
    'a/**/z',
    'deep/**',
    '\\#odd',
    'sp\\ ',
    '[ab].c',
    '!/x/',
    'x/*',
    '!x/y',
    'trail  ',
  ];
  const files = [
    'a.log',
    'keep.log',
    'sub/keep.log',
    'sub/b.log',
    'top.txt',
    'sub/top.txt',
    'build/o',
    'sub/build/o',
    'buildx/o',
    'docs/a.pdf',
    'sub/docs/a.pdf',
    'docs/s/a.pdf',
    'a/z',
    'a/b/z',
    'a/b/c/z',
    'b/a/z',
    'deep/q',
    '#odd',
    'a.c',
    'c.c',
    'x/n',
    'x/y',
    'trail',
    'nested/keep.txt',
    'nested/only.tmp',
    'plain.txt',
  ];

  it('decides as git does', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'ignore-'));
    try {
      execFileSync('git', ['init', '-q', folder]);
      for (const file of files) {
        await mkdir(join(folder, file, '..'), { recursive: true });
        await writeFile(join(folder, file), 'needle');
      }
      await writeFile(join(folder, '.gitignore'), rules.join('\n'));
      await writeFile(join(folder, 'nested', '.gitignore'), '*.tmp\n/keep.txt\n');
      const tracked = execFileSync('git', ['-C', folder, 'ls-files', '-co', '--exclude-standard', '-z'])
        .toString()
        .split('\0')
        .filter((f) => f !== '' && !f.endsWith('.gitignore'));
      const scope = await Scope.open({ ...confineDefaults, root: folder });
      const result = await searchDirect(
        scope,
        confineDefaults,
        { query: 'needle', respect_gitignore: true, use_default_excludes: false, exclude_globs: ['.git'], search_paths: false },
        new AbortController().signal,
      );
      expect(result.content_matches.map((m) => m.path).sort()).toEqual(tracked.sort());
      expect(tracked.length).toBeGreaterThan(8);
      const below = await searchDirect(
        scope,
        confineDefaults,
        { query: 'needle', path: 'sub', respect_gitignore: true, search_paths: false },
        new AbortController().signal,
      );
      expect(below.content_matches.map((m) => `sub/${m.path}`)).toEqual(tracked.filter((f) => f.startsWith('sub/')));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('is quick for rules that are made to be slow', () => {
    const file = new IgnoreFile('*a*a*a*a*a*a*a*a*a*a*a*a*a*b\n');
    const began = performance.now();
    expect(file.decide('a'.repeat(250), false)).toBe(null);
    expect(performance.now() - began).toBeLessThan(100);
  });
});

describe('excerpt', () => {
  it('cuts around the match on whole characters and says how long the line is', () => {
    const line = `${'😀'.repeat(300)}needle${'é'.repeat(300)}`;
    const cut = excerpt(line, line.indexOf('needle'), 100);
    expect(cut).toContain('needle');
    expect(cut).toMatch(/^….*… \[line of 1806 bytes\]$/);
    expect(cut.isWellFormed()).toBe(true);
    expect(excerpt('short', 0, 100)).toBe('short');
  });
});
