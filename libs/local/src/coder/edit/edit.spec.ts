import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { load, Scope } from '../../confine/index.js';
import { failure, longestBlock, startApp, type TestApp } from '../../confine/test/app.js';
import { CoderModule } from '../coder.module.js';
import { coderError } from '../errors.js';
import type { ReadResult } from '../read-file.js';
import type { CreateFileResult } from './create-file.js';
import { applyLineOps, type LineOp } from './line-ops.js';
import { makeReplace } from './replace.js';
import type { UpdateFileResult } from './update-file.js';
import { writeAtomic } from './write.js';

let app: TestApp;
beforeAll(async () => {
  app = await startApp(CoderModule);
});
afterAll(() => app.close());

const at = (path: string): string => join(app.root, path);
const text = (path: string): Promise<string> => readFile(at(path), 'utf8');
const create = async (...files: object[]): Promise<CreateFileResult[]> =>
  (await app.call<{ results: CreateFileResult[] }>('coder::create-file', { files })).results;
const update = async (path: string, ...ops: object[]): Promise<UpdateFileResult> => {
  const { results } = await app.call<{ results: UpdateFileResult[] }>('coder::update-file', { files: [{ path, ops }] });
  return results[0] as UpdateFileResult;
};
const leftovers = async (): Promise<string[]> => (await readdir(app.root)).filter((name) => name.endsWith('.tmp'));

describe('coder::create-file', () => {
  it('writes new files with folders, mode and revision', async () => {
    const [one] = await create({ path: 'new/deep/a.sh', content: '#!/bin/sh\n', mode: '0755' });
    expect(one).toMatchObject({ path: at('new/deep/a.sh'), success: true, bytes_written: 10 });
    expect((await stat(at('new/deep/a.sh'))).mode & 0o777).toBe(0o755);
    const read = await app.call<ReadResult>('coder::read-file', { path: 'new/deep/a.sh' });
    expect(read.revision).toBe(one?.revision);
  });

  it('keeps a file that is there unless told to replace it, and then keeps its mode', async () => {
    await writeFile(at('kept.txt'), 'old');
    await chmod(at('kept.txt'), 0o600);
    expect(await create({ path: 'kept.txt', content: 'new' }, { path: 'other.txt', content: 'o' })).toMatchObject([
      { success: false, bytes_written: 0, error: { code: 'C213' } },
      { success: true },
    ]);
    expect(await text('kept.txt')).toBe('old');
    expect(await create({ path: 'kept.txt', content: 'new', overwrite: true })).toMatchObject([{ success: true }]);
    expect(await text('kept.txt')).toBe('new');
    expect((await stat(at('kept.txt'))).mode & 0o777).toBe(0o600);
    expect(await leftovers()).toEqual([]);
  });

  it('writes only over the revision that was seen', async () => {
    const [first] = await create({ path: 'rev.txt', content: '1' });
    const [second] = await create({ path: 'rev.txt', content: '2', expected_revision: first?.revision });
    expect(second).toMatchObject({ success: true });
    expect(await create({ path: 'rev.txt', content: '3', overwrite: true, expected_revision: first?.revision })).toMatchObject([
      { success: false, error: { code: 'C221' } },
    ]);
    expect(await create({ path: 'gone.txt', content: '3', expected_revision: first?.revision })).toMatchObject([
      { error: { code: 'C221' } },
    ]);
    expect(await text('rev.txt')).toBe('2');
  });

  it('lets one of many at once create a file', async () => {
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => create({ path: 'race.txt', content: `${i}` })));
    expect(all.flat().filter((r) => r.success)).toHaveLength(1);
  });

  it.each([
    ['../out.txt', 'C211'],
    ['/tmp/out-of-it.txt', 'C211'],
    ['away/x.txt', 'C211'],
    ['folder', 'C210'],
    ['.', 'C210'],
    ['.env', 'C211'],
    ['no/parent.txt', 'C211'],
  ])('does not write %s', async (path, code) => {
    await mkdir(at('folder'), { recursive: true });
    await symlink('/tmp', at('away')).catch(() => undefined);
    expect(await create({ path, content: 'x', overwrite: true, parents: false })).toMatchObject([{ success: false, error: { code } }]);
    expect(await leftovers()).toEqual([]);
  });

  it('refuses too much and nothing at all', async () => {
    app.values.max_file_bytes = 10;
    expect(await create({ path: 'big.txt', content: 'x'.repeat(11) })).toMatchObject([{ error: { code: 'C213' } }]);
    app.values.max_file_bytes = 10_485_760;
    expect(await failure(create())).toMatch(/^C210: files is empty/);
    expect(await failure(create({ path: 'm', content: '', mode: '9999' }))).toMatch(/^C210: /);
  });

  it('C48 leaves nothing behind when a write fails, and says a full disk as such', async () => {
    await mkdir(at('taken/child'), { recursive: true });
    const { folder } = await (await Scope.open(app.values)).openParent('taken', false);
    await expect(writeAtomic(folder, 'taken', Buffer.from('x'), { mode: 0o644, exclusive: false })).rejects.toThrow(/EISDIR|ENOTEMPTY/);
    await folder.close();
    expect(await leftovers()).toEqual([]);
    expect(coderError(Object.assign(new Error('no space'), { code: 'ENOSPC' }), 'a.txt')).toMatchObject({
      code: 'C213',
      detail: expect.stringContaining('no space left') as string,
    });
  });
});

describe('coder::update-file', () => {
  beforeEach(() => writeFile(at('doc.txt'), 'one\ntwo\nthree\nfour\n'));

  it('applies line ops by the numbers of the file as it was, whatever their order', async () => {
    const result = await update(
      'doc.txt',
      { op: 'insert', at_line: 1, content: 'zero' },
      { op: 'remove', from_line: 4, to_line: 4 },
      { op: 'update_lines', from_line: 2, to_line: 3, content: 'TWO\n2.5\nTHREE\n' },
      { op: 'insert', at_line: 5, content: 'end\n' },
    );
    expect(await text('doc.txt')).toBe('zero\none\nTWO\n2.5\nTHREE\nend\n');
    expect(result).toMatchObject({ path: at('doc.txt'), success: true, applied: 4, new_line_count: 6, echoes_truncated: false });
    expect(result.echoes[0]).toEqual({ op_index: 0, from_line: 1, lines: ['zero', 'one', 'TWO'] });
    expect(result.echoes[2]).toEqual({ op_index: 2, from_line: 1, lines: ['zero', 'one', 'TWO', '2.5', 'THREE', 'end'] });
  });

  it('runs replace ops after line ops, with groups, and echoes the final lines', async () => {
    const result = await update(
      'doc.txt',
      { op: 'replace', pattern: '(?m)^t(\\w+)$', replacement: 'T-$1\n$$1' },
      { op: 'insert', at_line: 5, content: 'ten' },
    );
    expect(await text('doc.txt')).toBe('one\nT-wo\n$1\nT-hree\n$1\nfour\nT-en\n$1\n');
    expect(result.echoes.filter((e) => e.op_index === 0)).toEqual([
      { op_index: 0, from_line: 2, lines: ['T-wo', '$1'], total_replacements: 3 },
      { op_index: 0, from_line: 4, lines: ['T-hree', '$1'], total_replacements: 3 },
      { op_index: 0, from_line: 7, lines: ['T-en', '$1'], total_replacements: 3 },
    ]);
    expect(result.echoes.find((e) => e.op_index === 1)?.lines).toContain('T-en');
  });

  it.each([
    [
      [
        { op: 'remove', from_line: 1, to_line: 2 },
        { op: 'update_lines', from_line: 2, to_line: 3, content: 'X' },
      ],
      'touch the same lines',
    ],
    [
      [
        { op: 'remove', from_line: 1, to_line: 3 },
        { op: 'insert', at_line: 2, content: 'X' },
      ],
      'touch the same lines',
    ],
    [[{ op: 'remove', from_line: 4, to_line: 5 }], 'has 4 lines'],
    [[{ op: 'insert', at_line: 6, content: 'X' }], 'must be 1 to 5'],
    [[{ op: 'replace', pattern: '[unclosed', replacement: 'x' }], 'not valid RE2'],
    [[{ op: 'replace', pattern: '(?=look)', replacement: 'x' }], 'not valid RE2'],
    [[{ op: 'replace', pattern: 'o', replacement: '$2' }], 'does not define'],
    [[{ op: 'replace', pattern: 'o', replacement: '$name' }], 'does not define'],
    [[{ op: 'replace', pattern: 'o', replacement: '5 $' }], 'literal $'],
    [
      [
        { op: 'insert', at_line: 1, content: 'X' },
        { op: 'replace', pattern: 'o', replacement: '0', expect_matches: 1 },
      ],
      'matches 3 times',
    ],
    [[], 'ops is empty'],
  ])('applies nothing of %j', async (ops, why) => {
    const result = await update('doc.txt', ...ops);
    expect(result).toMatchObject({ success: false, applied: 0, echoes: [], error: { code: 'C210' } });
    expect(result.error?.message).toContain(why);
    expect(await text('doc.txt')).toBe('one\ntwo\nthree\nfour\n');
  });

  it('asserts absence with expect_matches 0 and shows an op that matched nothing', async () => {
    const result = await update('doc.txt', { op: 'replace', pattern: 'nine', replacement: '', expect_matches: 0 });
    expect(result).toMatchObject({ success: true, echoes: [{ op_index: 0, lines: [], total_replacements: 0 }] });
  });

  it('keeps mode, line ends, byte order mark and a missing last newline', async () => {
    await writeFile(at('crlf.sh'), '\ufeffa\r\nb\r\nc');
    await chmod(at('crlf.sh'), 0o750);
    await update(
      'crlf.sh',
      { op: 'update_lines', from_line: 2, to_line: 2, content: 'B\nB2' },
      { op: 'replace', pattern: 'a\\nB', replacement: 'A\nB' },
    );
    expect(await text('crlf.sh')).toBe('\ufeffA\r\nB\r\nB2\r\nc');
    expect((await stat(at('crlf.sh'))).mode & 0o777).toBe(0o750);
    await writeFile(at('mixed.txt'), 'a\r\nb\nc\n');
    await update('mixed.txt', { op: 'remove', from_line: 3, to_line: 3 });
    expect(await text('mixed.txt')).toBe('a\r\nb\n');
    expect(await leftovers()).toEqual([]);
  });

  it('edits through a link inside, and not a binary, hidden or missing file', async () => {
    await symlink('doc.txt', at('alias')).catch(() => undefined);
    expect(await update('alias', { op: 'remove', from_line: 2, to_line: 4 })).toMatchObject({ success: true, path: at('doc.txt') });
    expect(await text('doc.txt')).toBe('one\n');
    await writeFile(at('bin'), Buffer.from([0, 255]));
    expect(await update('bin', { op: 'insert', at_line: 1, content: 'x' })).toMatchObject({ success: false, error: { code: 'C210' } });
    expect(await update('none', { op: 'insert', at_line: 1, content: 'x' })).toMatchObject({ success: false, error: { code: 'C211' } });
    expect(await update('/etc/hosts', { op: 'insert', at_line: 1, content: 'x' })).toMatchObject({
      success: false,
      error: { code: 'C211' },
    });
  });

  it('loses none of many edits at once', async () => {
    await writeFile(at('count.txt'), '');
    await Promise.all(Array.from({ length: 25 }, (_, i) => update('count.txt', { op: 'insert', at_line: 1, content: `line ${i}` })));
    expect((await text('count.txt')).split('\n').filter((line) => line.startsWith('line'))).toHaveLength(25);
  });

  it('neither hangs nor blocks on a pattern that is made to be slow', async () => {
    await writeFile(at('slow.txt'), `${'a'.repeat(200_000)}!`);
    const blocked = await longestBlock(async () => {
      const result = await update('slow.txt', { op: 'replace', pattern: '(a+)+$', replacement: 'b', expect_matches: 0 });
      expect(result).toMatchObject({ success: true });
    });
    expect(blocked).toBeLessThan(100);
  });

  it('edits a large file without holding the event loop for long', async () => {
    await writeFile(at('large.txt'), `${'word '.repeat(20)}\n`.repeat(50_000));
    let result: UpdateFileResult | undefined;
    const blocked = await longestBlock(async () => {
      result = await update(
        'large.txt',
        { op: 'replace', pattern: 'word $', replacement: 'end' },
        { op: 'remove', from_line: 2, to_line: 2 },
      );
    });
    expect(result).toMatchObject({ success: true, new_line_count: 49_999 });
    expect(blocked).toBeLessThan(150);
  });

  it('bounds the echoes', async () => {
    await writeFile(at('echo.txt'), `${'e'.repeat(300)}\n`.repeat(200));
    const result = await update(
      'echo.txt',
      ...Array.from({ length: 20 }, (_, i) => ({
        op: 'update_lines',
        from_line: i * 10 + 1,
        to_line: i * 10 + 1,
        content: 'x'.repeat(300),
      })),
    );
    expect(result.echoes_truncated).toBe(true);
    expect(JSON.stringify(result.echoes).length).toBeLessThan(8_000);
    const long = await update('echo.txt', { op: 'insert', at_line: 1, content: 'y\n'.repeat(100) });
    expect(long.echoes[0]).toMatchObject({ from_line: 1, elided: 82 });
    expect(long.echoes[0]?.lines).toHaveLength(20);
  });
});

describe('the edit engine', () => {
  it('does what a simple bottom-up model does', () => {
    const line = fc.string({ unit: fc.constantFrom('a', 'b', 'é'), maxLength: 3 });
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 8 }),
        fc.array(fc.record({ at: fc.nat(8), take: fc.nat(2), put: fc.option(line, { nil: null }) }), { maxLength: 4 }),
        (lines, wanted) => {
          const source = lines.map((l) => `${l}\n`).join('');
          const ops: LineOp[] = [];
          let free = 0;
          for (const { at: offset, take, put } of [...wanted].sort((a, b) => a.at - b.at)) {
            const from = Math.max(free, offset);
            if (take === 0 && from <= lines.length) ops.push({ op: 'insert', at_line: from + 1, content: put ?? '' });
            else if (take > 0 && from + take <= lines.length) {
              if (put === null) ops.push({ op: 'remove', from_line: from + 1, to_line: from + take });
              else ops.push({ op: 'update_lines', from_line: from + 1, to_line: from + take, content: put });
              free = from + take;
            }
          }
          const model = [...lines];
          for (const op of [...ops].reverse()) {
            if (op.op === 'insert') model.splice(op.at_line - 1, 0, op.content);
            else model.splice(op.from_line - 1, op.to_line - op.from_line + 1, ...(op.op === 'remove' ? [] : [op.content]));
          }
          const result = applyLineOps(
            source,
            ops.map((op, index) => ({ index, op })),
          );
          expect(result.text).toBe(model.map((l) => `${l}\n`).join(''));
          for (const region of result.regions) {
            const op = ops[region.opIndex];
            expect(result.text.slice(region.start, region.end)).toBe(op !== undefined && 'content' in op ? op.content : '');
          }
        },
      ),
    );
  });

  it('keeps regions on their text through replacements', () => {
    const replace = makeReplace(load);
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'x', '\n'), maxLength: 20 }),
        fc.string({ unit: fc.constantFrom('y', '\n'), maxLength: 3 }),
        fc.nat(20),
        (before, replacement, offset) => {
          const start = Math.min(offset, before.length);
          const marked = `${before.slice(0, start)}MARK${before.slice(start)}`;
          const output = replace({
            text: marked,
            ops: [{ index: 1, op: { op: 'replace', pattern: 'a', replacement } }],
            regions: [{ opIndex: 0, start, end: start + 4 }],
            maxLength: 1_000,
            maxSites: 5,
          });
          if ('wrong' in output) throw new Error(output.wrong);
          expect(output.text).toBe(marked.replaceAll('a', replacement));
          const region = output.regions.find((r) => r.opIndex === 0);
          expect(output.text.slice(region?.start, region?.end)).toBe('MARK');
          for (const site of output.regions.filter((r) => r.opIndex === 1))
            expect(output.text.slice(site.start, site.end)).toBe(replacement);
        },
      ),
    );
  });
});
