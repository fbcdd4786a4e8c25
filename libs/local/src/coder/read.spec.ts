import { execFileSync } from 'node:child_process';
import { chmod, mkdir, open, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { failure, longestBlock, startApp, type TestApp } from '../confine/test/app.js';
import { CoderModule } from './coder.module.js';
import type { ListFolderResult } from './list-folder.js';
import type { ReadEntry, ReadResult } from './read-file.js';
import type { TreeNode } from './tree.js';

let app: TestApp;
beforeAll(async () => {
  app = await startApp(CoderModule);
});
afterAll(() => app.close());

const put = async (path: string, content: string | Buffer): Promise<string> => {
  const whole = join(app.root, path);
  await mkdir(join(whole, '..'), { recursive: true });
  await writeFile(whole, content);
  return whole;
};
const read = (payload: object): Promise<ReadResult> => app.call<ReadResult>('coder::read-file', payload);

describe('coder::read-file', () => {
  it('reads a whole file with what there is to know of it', async () => {
    const path = await put('a.txt', 'one\ntwo\n');
    await chmod(path, 0o640);
    const result = await read({ path: 'a.txt' });
    expect(result).toMatchObject({
      path,
      content: 'one\ntwo\n',
      size: 8,
      mode: 0o640,
      is_utf8: true,
      lines_returned: 2,
      more_lines: false,
      total_lines: 2,
    });
    expect(Math.abs(result.mtime - Date.now() / 1_000)).toBeLessThan(60);
    expect(result.revision).toMatch(/^sha256:[0-9a-f]{32}$/);
  });

  it.each([
    [{ line_from: 2, line_to: 3 }, '2\n3\n', 2, true],
    [{ line_from: 4 }, '4\n5', 2, false],
    [{ line_to: 1 }, '1\n', 1, true],
    [{ line_from: 9 }, '', 0, false],
    [{ line_from: 2, line_to: 99, numbered: true }, '2→2\n3→3\n4→4\n5→5', 4, false],
  ])('reads the lines %j', async (range, content, lines, more) => {
    await put('five.txt', '1\n2\n3\n4\n5');
    expect(await read({ path: 'five.txt', ...range })).toMatchObject({ content, lines_returned: lines, more_lines: more, total_lines: 5 });
  });

  it('keeps line ends as they are and tells an empty file from a missing one', async () => {
    await put('crlf.txt', '\ufeffa\r\nb\r\n');
    expect((await read({ path: 'crlf.txt' })).content).toBe('\ufeffa\r\nb\r\n');
    await put('empty.txt', '');
    expect(await read({ path: 'empty.txt' })).toMatchObject({ content: '', total_lines: 0, lines_returned: 0, more_lines: false });
    expect(await failure(read({ path: 'none.txt' }))).toMatch(/^C211: none\.txt does not exist/);
  });

  it('tells metadata only', async () => {
    await put('s.txt', 'x\ny\n');
    expect(await read({ path: 's.txt', stat: true })).toMatchObject({
      content: null,
      size: 4,
      total_lines: 2,
      is_utf8: true,
      lines_returned: 0,
    });
    expect(await failure(read({ path: 's.txt', stat: true, line_from: 1 }))).toMatch(/^C210: stat/);
  });

  it('says that bytes are not text', async () => {
    await put('binary', Buffer.from([0x00, 0xff, 0xfe, 0x41]));
    expect(await read({ path: 'binary' })).toMatchObject({ is_utf8: false, content: '\0\ufffd\ufffdA' });
  });

  it('fails a whole file over budget with what to do, and cuts a range at whole lines', async () => {
    await put('long.txt', 'é'.repeat(49).concat('\n').repeat(100));
    expect(await failure(read({ path: 'long.txt', max_output_bytes: 1_000 }))).toMatch(
      /^C213: long\.txt has 9900 bytes in 100 lines.*line_from/,
    );
    expect(await read({ path: 'long.txt', line_from: 1, max_output_bytes: 250 })).toMatchObject({ lines_returned: 2, more_lines: true });
    const cut = await read({ path: 'long.txt', line_from: 1, max_output_bytes: 10 });
    expect(cut).toMatchObject({ content: 'ééééé', more_lines: true, is_utf8: true });
    expect((await read({ path: 'long.txt', line_from: 1, max_output_bytes: 9 })).content).toBe('éééé');
  });

  it('reads a batch in order, each file by itself, within one budget', async () => {
    await put('b1.txt', 'b1');
    await put('b2.txt', '1\n2\n3\n');
    await put('.env', 'KEY=1');
    const { results } = await app.call<{ results: ReadEntry[] }>('coder::read-file', {
      paths: ['b1.txt', { path: 'b2.txt', line_from: 2, line_to: 2, numbered: true }, 'none', '.env', '../x'],
    });
    expect(results).toMatchObject([
      { success: true, content: 'b1' },
      { success: true, content: '2→2\n' },
      { success: false, path: 'none', error: { code: 'C211' } },
      { success: false, path: '.env', error: { code: 'C211' } },
      { success: false, path: '../x', error: { code: 'C211' } },
    ]);
    await put('b3.txt', 'x'.repeat(400_000));
    const second = await app.call<{ results: ReadEntry[] }>('coder::read-file', { paths: ['b3.txt', 'b3.txt', 'b1.txt'] });
    expect(second.results).toMatchObject([{ success: true }, { success: false, error: { code: 'C213' } }, { success: true }]);
  });

  it.each([
    [{}],
    [{ path: 'a', paths: ['b'] }],
    [{ path: 'a', line_from: 0 }],
    [{ path: 'a', line_from: 5, line_to: 4 }],
    [{ path: 3 }],
    [{ path: '' }],
  ])('refuses %j', async (payload) => {
    expect(await failure(read(payload))).toMatch(/^C210: /);
  });

  it.each(['/etc/passwd', '../../../../etc/passwd', '/proc/self/environ', 'link', '/dev/zero', 'pipe'])(
    'does not read %s',
    async (path) => {
      await symlink('/etc/passwd', join(app.root, 'link')).catch(() => undefined);
      try {
        execFileSync('/bin/sh', ['-c', 'mkfifo "$1"', 'sh', join(app.root, 'pipe')], { stdio: 'ignore' });
      } catch {
        // It is there already.
      }
      expect(await failure(read({ path }))).toMatch(/^C21[01]: /);
    },
  );

  it('reads ranges of a huge file without holding it or the event loop', async () => {
    const path = await put('huge.txt', '');
    const file = await open(path, 'w');
    const block = Buffer.from(`${'x'.repeat(99)}\n`.repeat(10_000));
    for (let i = 0; i < 60; i++) await file.write(block);
    await file.close();
    expect(await failure(read({ path: 'huge.txt' }))).toMatch(/^C213: huge\.txt has 60000000 bytes/);
    expect(await read({ path: 'huge.txt', stat: true })).toMatchObject({ size: 60_000_000, total_lines: null, content: null });
    let result: ReadResult | undefined;
    const blocked = await longestBlock(async () => {
      result = await read({ path: 'huge.txt', line_from: 599_999 });
    });
    expect(result).toMatchObject({ lines_returned: 2, more_lines: false, total_lines: 600_000 });
    expect(await read({ path: 'huge.txt', line_from: 599_999, line_to: 599_999, numbered: true })).toMatchObject({
      more_lines: true,
      lines_returned: 1,
      content: `599999→${'x'.repeat(99)}\n`,
    });
    expect(blocked).toBeLessThan(100);
  });

  it('reads a file of the largest size without holding the event loop', async () => {
    await put('ten.txt', `${'y'.repeat(20)}\n`.repeat(480_000));
    const blocked = await longestBlock(() => read({ path: 'ten.txt', line_from: 400_000, line_to: 400_001 }));
    expect(blocked).toBeLessThan(100);
  });

  it('gives up a scan when the caller does', async () => {
    const path = await put('sparse.bin', '');
    await truncate(path, 200_000_000_000);
    const controller = new AbortController();
    const began = performance.now();
    const reading = app.call('coder::read-file', { path: 'sparse.bin', line_from: 2 }, { signal: controller.signal });
    setTimeout(() => controller.abort(), 50);
    expect(await failure(reading)).toContain('invocation_stopped');
    expect(performance.now() - began).toBeLessThan(1_000);
  });
});

describe('coder::list-folder', () => {
  it('lists a folder page by page', async () => {
    for (const name of ['c', 'a', 'b']) await put(`list/${name}.txt`, name);
    await mkdir(join(app.root, 'list', 'sub'));
    await put('list/.env', '');
    await symlink('/etc', join(app.root, 'list', 'away'));
    const first = await app.call<ListFolderResult>('coder::list-folder', { path: 'list', page_size: 4 });
    expect(first).toMatchObject({ path: join(app.root, 'list'), page: 1, page_size: 4, total: 6, has_more: true });
    expect(first.entries.map((e) => [e.name, e.kind, e.non_accessible])).toEqual([
      ['.env', 'file', true],
      ['a.txt', 'file', false],
      ['away', 'symlink', false],
      ['b.txt', 'file', false],
    ]);
    const second = await app.call<ListFolderResult>('coder::list-folder', { path: 'list', page: 2, page_size: 4 });
    expect(second.entries.map((e) => e.name)).toEqual(['c.txt', 'sub']);
    expect(second.has_more).toBe(false);
    expect(await failure(app.call('coder::list-folder', { path: 'list/away' }))).toMatch(/^C211: /);
    expect(await failure(app.call('coder::list-folder', { path: 'list/a.txt' }))).toMatch(/^C210: .*not a folder/);
  });

  it('lists a folder of 2,000 files without holding the event loop', async () => {
    const folder = join(app.root, 'many');
    execFileSync('/bin/sh', ['-c', `mkdir "$1" && cd "$1" && seq 1 2000 | xargs touch`, 'sh', folder]);
    let result: ListFolderResult | undefined;
    const blocked = await longestBlock(async () => {
      result = await app.call<ListFolderResult>('coder::list-folder', { path: 'many' });
    });
    expect(result).toMatchObject({ total: 2_000, has_more: true });
    expect(result?.entries).toHaveLength(100);
    expect(blocked).toBeLessThan(100);
  });
});

describe('coder::tree and coder::info', () => {
  it('shows what is below a folder within its limits', async () => {
    await put('tree/src/a.ts', 'a');
    await put('tree/src/deep/er/b.ts', 'b');
    await put('tree/node_modules/x/index.js', '');
    for (let i = 0; i < 5; i++) await put(`tree/wide/${i}.txt`, '');
    const { root, path } = await app.call<{ root: TreeNode; path: string }>('coder::tree', {
      path: 'tree',
      max_depth: 2,
      per_folder_limit: 3,
    });
    expect(path).toBe(join(app.root, 'tree'));
    const [modules, src, wide] = root.children ?? [];
    expect(modules).toMatchObject({ name: 'node_modules', truncated: { reason: 'default_exclude' } });
    expect(src?.children).toMatchObject([
      { name: 'a.ts', kind: 'file', size: 1 },
      { name: 'deep', truncated: { reason: 'max_depth' } },
    ]);
    expect(wide).toMatchObject({ truncated: { reason: 'per_folder_limit', shown: 3, total: 5 } });
    const all = await app.call<{ root: TreeNode }>('coder::tree', { path: 'tree/node_modules', use_default_excludes: false });
    expect(JSON.stringify(all.root)).toContain('index.js');
  });

  it('does not follow links out, or around in a circle', async () => {
    await mkdir(join(app.root, 'loop'));
    await symlink('.', join(app.root, 'loop', 'self'));
    await symlink('/etc', join(app.root, 'loop', 'etc'));
    const { root } = await app.call<{ root: TreeNode }>('coder::tree', { path: 'loop' });
    expect(root.children?.map((c) => [c.name, c.kind, c.children])).toEqual([
      ['etc', 'symlink', undefined],
      ['self', 'symlink', undefined],
    ]);
  });

  it('tells roots and budgets, and fails where file functions are off', async () => {
    expect(await app.call('coder::info', {})).toMatchObject({
      allowed_roots: [app.root],
      session_root: app.root,
      budgets: { max_output_bytes: 131_072 },
    });
    app.values.root = 'off';
    expect(await failure(app.call('coder::info', {}))).toMatch(/^C211: .*off/);
    app.values.root = app.root;
  });

  it('follows a scope that the harness stamps on a call', async () => {
    await put('inner/x.txt', 'x');
    expect(await read({ path: 'x.txt', fs_scope: { root: 'inner', grants: [], boundary: 'workspace' } })).toMatchObject({ content: 'x' });
    expect(await failure(read({ path: '../a.txt', fs_scope: { root: 'inner', boundary: 'workspace' } }))).toMatch(/^C211: .*outside/);
  });
});
