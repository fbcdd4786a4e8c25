import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Arena, openArena, ROUNDS, SECRET, Swapper } from './support/arena.js';

let arena: Arena;
beforeAll(async () => {
  arena = await openArena();
});
afterAll(() => arena.close());
beforeEach(() => {
  rmSync(join(arena.root, 'flip'), { recursive: true, force: true });
  mkdirSync(join(arena.root, 'flip'));
  writeFileSync(join(arena.root, 'flip', 'a.txt'), 'inside\n');
});

/** The names in a folder and what the files in it hold. */
const contents = (folder: string): [string, string][] =>
  readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]);

const calls: { [gain: string]: (round: number, path: string) => [string, object] } = {
  'reads a byte': (_round, path) => ['coder::read-file', { path }],
  'reads a byte in a batch': (_round, path) => ['coder::read-file', { paths: [path, { path, line_from: 1 }] }],
  'finds a byte': () => ['coder::search', { query: SECRET.slice(0, 8), respect_gitignore: true }],
  'finds a byte below the folder': () => ['coder::search', { query: SECRET.slice(0, 8), path: 'flip' }],
  'makes a file': (round) => [
    'coder::create-file',
    { files: [{ path: `flip/new-${round % 5}.txt`, content: 'inside\n', overwrite: true }] },
  ],
  'makes a folder': (round) => [
    'coder::create-file',
    { files: [{ path: `flip/new-${round % 5}/deep/a.txt`, content: 'inside\n', overwrite: true }] },
  ],
  'replaces a file': (_round, path) => ['coder::create-file', { files: [{ path, content: 'inside\n', overwrite: true }] }],
  'edits a file': (_round, path) => [
    'coder::update-file',
    { files: [{ path, ops: [{ op: 'update_lines', from_line: 1, to_line: 1, content: 'inside' }] }] },
  ],
};

describe.each([
  ['outside the root', () => arena.outside],
  ['in the closed folder', () => arena.closed],
])('while links are swapped, nobody %s', (_where, target) => {
  it.each(Object.entries(calls))('%s', async (gain, call) => {
    const rounds = gain.startsWith('reads') ? 5 * ROUNDS : ROUNDS; // they are quick
    const before = contents(target());
    const swapper = await Swapper.start(arena.root, target());
    let done = 0;
    try {
      for (let round = 0; round < rounds; round++) {
        const [fn, payload] = call(round, round % 2 === 0 ? 'flip/a.txt' : 'a.txt');
        const answer = await arena.app.call<object>(fn, payload).catch((error: unknown) => ({ error: String(error) }));
        expect(JSON.stringify(answer)).not.toContain(SECRET);
        if (!JSON.stringify(answer).includes('error')) done++;
      }
    } finally {
      expect(await swapper.stop()).toBeGreaterThan(20);
    }
    expect(contents(target())).toEqual(before);
    expect(done).toBeGreaterThan(0);
  });
});

describe('while links are swapped, a folder listing', () => {
  it.each(['coder::list-folder', 'coder::tree'])('of %s names nothing outside', async (fn) => {
    const swapper = await Swapper.start(arena.root, arena.outside);
    try {
      for (let round = 0; round < ROUNDS; round++) {
        const answer = await arena.app.call<{ path: string }>(fn, { path: 'flip' }).catch(() => null);
        if (answer !== null) expect(answer.path.startsWith(arena.root)).toBe(true);
      }
    } finally {
      await swapper.stop();
    }
  });
});
