import { execFileSync } from 'node:child_process';
import { link, mkdir, mkdtemp, readFile, realpath, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Scope } from './confine.js';
import { confineDefaults } from './settings.js';

let base: string;
let root: string;
let outside: string;

beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'scope-')));
  root = join(base, 'root');
  outside = join(base, 'root-secret');
  await mkdir(root);
  await mkdir(outside);
  await writeFile(join(outside, 'secret.txt'), 'secret');
  await writeFile(join(root, 'a.txt'), 'inside');
});
afterEach(() => rm(base, { recursive: true, force: true }));

const scope = (narrowed?: Parameters<typeof Scope.open>[1]): Promise<Scope> => Scope.open({ ...confineDefaults, root }, narrowed);

async function content(path: string, within?: Scope): Promise<string> {
  const file = await (within ?? (await scope())).openFile(path);
  try {
    return await file.handle.readFile('utf8');
  } finally {
    await file.handle.close();
  }
}

describe('Scope', () => {
  it('opens what is inside, by relative and by absolute path', async () => {
    await mkdir(join(root, 'sub'));
    await symlink('../a.txt', join(root, 'sub', 'link'));
    expect(await content('a.txt')).toBe('inside');
    expect(await content('sub/../a.txt')).toBe('inside');
    expect(await content(join(root, 'a.txt'))).toBe('inside');
    expect(await content('sub/link')).toBe('inside');
  });

  it.each([
    ['..', '../root-secret/secret.txt'],
    ['a sibling with the same beginning', '../root-secret/secret.txt'],
    ['an absolute path', '/etc/passwd'],
    ['the environment of this process', '/proc/self/environ'],
    ['a link to a file', 'link'],
    ['a link to a folder', 'folder/secret.txt'],
    ['a link to a link', 'second'],
  ])('refuses %s', async (_what, path) => {
    await symlink(join(outside, 'secret.txt'), join(root, 'link'));
    await symlink(outside, join(root, 'folder'));
    await symlink('link', join(root, 'second'));
    await expect(content(path)).rejects.toMatchObject({ name: 'PathError', reason: 'outside' });
  });

  it('refuses the system trees also when the root is /', async () => {
    const whole = await Scope.open({ ...confineDefaults, root: '/' });
    for (const path of ['/proc/self/environ', '/proc/1/environ', '/dev/null', '/sys/kernel/notes']) {
      await expect(content(path, whole)).rejects.toMatchObject({ name: 'PathError' });
    }
    expect(await content(join(root, 'a.txt'), whole)).toBe('inside');
  });

  it.each(['.env', 'deep/.env', 'deep/server.pem', '.env.production'])('hides %s', async (path) => {
    await mkdir(join(root, 'deep'));
    await writeFile(join(root, path), 'KEY=1');
    await expect(content(path)).rejects.toMatchObject({ reason: 'denied' });
    await symlink(path, join(root, 'innocent'));
    await expect(content('innocent')).rejects.toMatchObject({ reason: 'denied' });
  });

  it('refuses pipes, folders and odd paths without waiting', async () => {
    execFileSync('/bin/sh', ['-c', 'mkfifo "$1"', 'sh', join(root, 'pipe')]);
    await expect(content('pipe')).rejects.toMatchObject({ reason: 'type' });
    await expect(content('.')).rejects.toMatchObject({ reason: 'type' });
    await expect(content('')).rejects.toMatchObject({ reason: 'invalid' });
    await expect(content('a\0b')).rejects.toMatchObject({ reason: 'invalid' });
    await expect(content('x'.repeat(5_000))).rejects.toMatchObject({ reason: 'invalid' });
    await expect(content('none')).rejects.toMatchObject({ reason: 'missing' });
    await expect(content('a.txt/none')).rejects.toMatchObject({ reason: 'missing' });
  });

  it('is off when the root is off', async () => {
    await expect(Scope.open({ ...confineDefaults, root: 'off' })).rejects.toMatchObject({ reason: 'off' });
  });

  it('can be narrowed by a call, and not widened', async () => {
    await mkdir(join(root, 'sub'));
    await writeFile(join(root, 'sub', 'b.txt'), 'b');
    const narrow = await scope({ root: 'sub' });
    expect(await content('b.txt', narrow)).toBe('b');
    await expect(content('../a.txt', narrow)).rejects.toMatchObject({ reason: 'outside' });
    expect(await content('../a.txt', await scope({ root: 'sub', boundary: 'configured_roots' }))).toBe('inside');
    await expect(scope({ root: outside })).rejects.toMatchObject({ reason: 'outside' });
    await expect(scope({ root: '/' })).rejects.toMatchObject({ reason: 'outside' });
  });

  it('never reads outside while links are swapped under it', async () => {
    await mkdir(join(root, 'flip'));
    await writeFile(join(root, 'flip', 'secret.txt'), 'inside');
    const within = await scope();
    let swapping = true;
    let swaps = 0;
    const swapper = (async () => {
      for (; swapping; swaps++) {
        await rename(join(root, 'flip'), join(root, 'kept'));
        await symlink(outside, join(root, 'flip'));
        await unlink(join(root, 'flip'));
        await rename(join(root, 'kept'), join(root, 'flip'));
        if (swaps % 3 === 0) await pause(2);
      }
    })();
    let read = 0;
    for (let i = 0; i < 600; i++) {
      try {
        expect(await content('flip/secret.txt', within)).toBe('inside');
        read++;
      } catch (error) {
        expect(error).toMatchObject({ name: 'PathError' });
      }
    }
    swapping = false;
    await swapper;
    expect(swaps).toBeGreaterThan(50);
    expect(read).toBeGreaterThan(0);
  });

  it('writes into the folder that it opened, wherever the path leads by then', async () => {
    await mkdir(join(root, 'sub'));
    const { folder } = await (await scope()).openParent('sub/new.txt', false);
    await rename(join(root, 'sub'), join(root, 'moved'));
    await symlink(outside, join(root, 'sub'));
    await writeFile(folder.at('new.txt'), 'x');
    await folder.close();
    expect(await readFile(join(root, 'moved', 'new.txt'), 'utf8')).toBe('x');
    await expect(readFile(join(outside, 'new.txt'))).rejects.toThrow('ENOENT');
  });

  it.each([
    ['..', '../new.txt'],
    ['a link to a folder', 'folder/new.txt'],
    ['a link to a file', 'file'],
    ['a link that leads nowhere', 'dangling'],
    ['a folder link that leads nowhere', 'nowhere/new.txt'],
    ['an absolute path', '/tmp/never-made/new.txt'],
  ])('opens no parent through %s', async (_what, path) => {
    await symlink(outside, join(root, 'folder'));
    await symlink(join(outside, 'secret.txt'), join(root, 'file'));
    await symlink(join(outside, 'fresh.txt'), join(root, 'dangling'));
    await symlink(join(outside, 'fresh'), join(root, 'nowhere'));
    await expect((await scope()).openParent(path, true)).rejects.toMatchObject({ reason: 'outside' });
    await expect(readFile(join(outside, 'fresh', 'new.txt'))).rejects.toThrow();
  });

  it('makes missing folders only when asked', async () => {
    await expect((await scope()).openParent('x/y/z.txt', false)).rejects.toMatchObject({ reason: 'missing' });
    const { folder, name } = await (await scope()).openParent('x/y/z.txt', true);
    expect([folder.path, name]).toEqual([join(root, 'x', 'y'), 'z.txt']);
    await folder.close();
  });

  it('reads a hard link as the file that it is', async () => {
    await link(join(root, 'a.txt'), join(root, 'hard'));
    expect(await content('hard')).toBe('inside');
  });
});
