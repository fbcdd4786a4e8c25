import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** The numbers at the head of names of tests and groups, in the text of a spec file. */
function casesOf(spec: string): Set<string> {
  const heads = [...spec.matchAll(/\(\s*['"`]((?:[A-Z]\d{1,2} )+)/g)].map((found) => found[1] ?? '');
  return new Set(heads.flatMap((head) => head.match(/\bC\d\d\b/g) ?? []));
}

/** The rows of the page: each case with the files that it names, and what else stands there. */
function rowsOf(page: string): { id: string; files: string[]; words: string }[] {
  return [...page.matchAll(/^\| (C\d\d) \| .+? \| (.+) \|$/gm)].map(([, id = '', tests = '']) => ({
    id,
    files: [...tests.matchAll(/`([^`]+\.spec\.ts)`/g)].map((found) => found[1] ?? ''),
    words: tests.replace(/`[^`]+`|<br>/g, '').trim(),
  }));
}

const specs = ['apps', 'libs', 'test']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name.replaceAll('\\', '/')}`),
  )
  .filter((file) => file.endsWith('.spec.ts') && !file.includes('/node_modules/'));
const rows = rowsOf(read('docs/FIELD-CASES.md'));

describe('docs/FIELD-CASES.md', () => {
  it('has every case once, in order', () => {
    const ids = rows.map(({ id }) => id);
    expect(ids.length).toBeGreaterThan(50);
    expect(ids).toEqual(ids.map((_id, index) => `C${String(index + 1).padStart(2, '0')}`));
  });

  it.each(rows)('$id: names files that have a test of it, or says why there is none', ({ id, files, words }) => {
    expect(files.filter((file) => !existsSync(join(root, file)) || !casesOf(read(file)).has(id))).toEqual([]);
    if (files.length === 0) expect(words).toMatch(/^not yet: .{20}/);
  });

  it('names every file that has a test of a case', () => {
    const missing = specs.flatMap((file) =>
      [...casesOf(read(file))].filter((id) => !rows.some((row) => row.id === id && row.files.includes(file))).map((id) => `${id} ${file}`),
    );
    expect(missing).toEqual([]);
  });
});

describe('casesOf', () => {
  it('finds numbers at the head of names only', () => {
    const spec = `it('N1 holds'); describe("N2 I4 N3 all"); it.each([1])(\`N4 %s\`); it.each(['N5'])(\n 'N6 x'); it('see N7 there'); /C21[01]: /;`;
    expect([...casesOf(spec.replaceAll('N', 'C0'))]).toEqual(['C01', 'C02', 'C03', 'C04', 'C06']);
  });
});
