import {
  type FSWatcher,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  watch as watchFile,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { describeFault } from './fault.js';
import { ConfigurationWatch, LiveConfiguration } from './index.js';
import type { LiveOptions } from './live.js';
import type { WatchOptions } from './watch.js';

let root: string;
let dir: string;
let live: LiveConfiguration;
let watch: ConfigurationWatch | undefined;
const said: string[] = [];
/** The depth that was in force after each change. */
const depths: number[] = [];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'reload-'));
  dir = join(root, 'config');
  mkdirSync(dir);
  said.length = 0;
  depths.length = 0;
});
afterEach(() => {
  watch?.stop();
  watch = undefined;
  rmSync(root, { recursive: true, force: true });
});

const path = (name: string): string => join(dir, name);
const write = (name: string, text: string): void => writeFileSync(path(name), text);
/** Saves as most editors do: a new file takes the name of the old one. */
const replace = (name: string, text: string): void => {
  writeFileSync(path(`.${name}.swap`), text);
  renameSync(path(`.${name}.swap`), path(name));
};

/** Follows the folder by its events alone: the slow look would come after the test. */
function follow(options: WatchOptions = {}, liveOptions: LiveOptions = {}): void {
  live = new LiveConfiguration(dir, { graceMs: 400, ...liveOptions });
  live.onChange(() => depths.push(live.current.harness.max_depth));
  watch = new ConfigurationWatch(live, { debounceMs: 30, lookMs: 60_000, log: (_level, message) => said.push(message), ...options });
  watch.start();
}
const depth = (): number => live.current.harness.max_depth;
const faults = (): string[] => live.faults.map(describeFault);
const until = (what: () => unknown): Promise<unknown> => expect.poll(what, { interval: 5, timeout: 8_000 }).toBeTruthy();
/** Waits until the folder has been read once more than now. */
async function readAgain(): Promise<void> {
  const before = watch?.reads ?? 0;
  await until(() => (watch?.reads ?? 0) > before);
}

describe('C56 a saved file is in force', () => {
  it('written in place, and with CRLF', async () => {
    write('harness.yaml', 'max_depth: 1\n');
    follow();
    write('harness.yaml', 'max_depth: 2\r\nmax_children: 4\r\n');
    await until(() => depth() === 2);
    expect(live.current.harness.max_children).toBe(4);
    expect(faults()).toEqual([]);
    expect(said).toContain('harness: updated');
  });

  it('renamed over the old one, again and again', async () => {
    write('harness.yaml', 'max_depth: 1\n');
    follow();
    for (const value of [2, 3, 4]) {
      replace('harness.yaml', `max_depth: ${value}\n`);
      await until(() => depth() === value);
    }
    expect(depths).toEqual([2, 3, 4]);
  });

  it('the last one of twenty in a second, with few readings', async () => {
    write('harness.yaml', 'max_depth: 50\n');
    follow({ debounceMs: 100 });
    for (let value = 1; value <= 20; value++) {
      replace('harness.yaml', `max_depth: ${value}\n`);
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    await until(() => depth() === 20);
    expect(watch?.reads).toBeLessThanOrEqual(5);
    expect(depths.at(-1)).toBe(20);
  });

  it('even when saving never pauses', async () => {
    write('harness.yaml', 'max_depth: 50\n');
    follow({ debounceMs: 200, maxWaitMs: 300 });
    let value = 0;
    const saving = setInterval(() => replace('harness.yaml', `max_depth: ${++value % 40}\n`), 20);
    try {
      await until(() => depths.length > 0);
    } finally {
      clearInterval(saving);
    }
  });

  it('of every entry, and a link to it that is changed', async () => {
    follow();
    replace('llm-router.yaml', 'default_provider: demo\n');
    replace('confine.yaml', 'root: /srv\n');
    await until(() => live.current.router.default_provider === 'demo' && live.current.confine.root === '/srv');
    mkdirSync(path('..one'));
    writeFileSync(join(dir, '..one', 'harness.yaml'), 'max_depth: 7\n');
    symlinkSync('..one', path('..data'));
    symlinkSync(join('..data', 'harness.yaml'), path('harness.yaml'));
    await until(() => depth() === 7);
    mkdirSync(path('..two'));
    writeFileSync(join(dir, '..two', 'harness.yaml'), 'max_depth: 8\n');
    symlinkSync('..two', path('..next'));
    renameSync(path('..next'), path('..data'));
    await until(() => depth() === 8);
  });

  it('by a slow look where no event tells of it', async () => {
    const elsewhere = join(root, 'elsewhere.yaml');
    writeFileSync(elsewhere, 'max_depth: 1\n');
    symlinkSync(elsewhere, path('harness.yaml'));
    follow({ lookMs: 30 });
    writeFileSync(elsewhere, 'max_depth: 22\n');
    await until(() => depth() === 22);
  });
});

describe('C56 the last good values stay', () => {
  it.each([
    ['half-written', 'max_depth: 9\ndefault_functions: { allow: ['],
    ['cut in the middle of a name', 'max_depth: 9\nmax_chil'],
    ['with one wrong field among good ones', 'max_depth: 9\nmax_children: many\nconcurrency: 3\n'],
    ['with an unknown field', 'max_depth: 9\nmax_dept: 9\n'],
    ['not text', '\u0000\u0001: ['],
  ])('while a file is %s; the fault is there until it is put right', async (_case, text) => {
    write('harness.yaml', 'max_depth: 1\n');
    follow();
    const before = live.current.harness;
    replace('harness.yaml', text);
    await until(() => faults().length > 0);
    expect(live.current.harness).toBe(before);
    expect(faults()[0]).toContain(path('harness.yaml'));
    expect(said.filter((line) => line.includes('harness.yaml'))).toHaveLength(faults().length);
    replace('harness.yaml', 'max_depth: 2\n');
    await until(() => depth() === 2);
    expect(faults()).toEqual([]);
  });

  it('of all files, while one of them is wrong', async () => {
    follow();
    write('harness.yaml', 'max_depth: wrong\n');
    await until(() => faults().length > 0);
    write('llm-router.yaml', 'default_provider: demo\n');
    await readAgain();
    expect(live.current.router.default_provider).toBeNull();
    write('harness.yaml', 'max_depth: 5\n');
    await until(() => depth() === 5);
    expect(live.current.router.default_provider).toBe('demo');
  });

  it('through a save that removes the file, or empties it, before it writes', async () => {
    write('harness.yaml', 'max_depth: 1\n');
    follow();
    unlinkSync(path('harness.yaml'));
    await readAgain();
    expect(depth()).toBe(1);
    write('harness.yaml', 'max_depth: 2\n');
    await until(() => depth() === 2);
    truncateSync(path('harness.yaml'));
    await readAgain();
    expect(depth()).toBe(2);
    write('harness.yaml', 'max_depth: 3\n');
    await until(() => depth() === 3);
    expect(depths).toEqual([2, 3]);
    expect(faults()).toEqual([]);
  });

  it('while the folder itself is gone, also for longer; and a folder that comes back is followed', async () => {
    write('harness.yaml', 'max_depth: 1\n');
    follow({ lookMs: 30 }, { graceMs: 60 });
    rmSync(dir, { recursive: true });
    await until(() => faults().length > 0);
    expect(faults()[0]).toBe(`${dir}: is gone; the last values stay in force until it is back, or until the next start`);
    expect(depth()).toBe(1);
    mkdirSync(dir);
    write('harness.yaml', 'max_depth: 2\n');
    await until(() => depth() === 2);
    expect(faults()).toEqual([]);
    watch?.stop();
    watch = new ConfigurationWatch(live, { debounceMs: 30, lookMs: 60_000 });
    watch.start();
    replace('harness.yaml', 'max_depth: 3\n');
    await until(() => depth() === 3);
  });

  it('of the durability until the next start, which the faults say', async () => {
    follow();
    write('harness.yaml', 'durability: process\nmax_depth: 2\n');
    await until(() => depth() === 2);
    expect(live.current.harness.durability).toBe('power');
    expect(faults()).toEqual([
      `${path('harness.yaml')}: durability is "process" from the next start on; "power" stays in force until then`,
    ]);
    write('harness.yaml', 'max_depth: 3\n');
    await until(() => depth() === 3);
    expect(faults()).toEqual([]);
    expect(new LiveConfiguration(dir).current.harness.durability).toBe('power');
  });
});

describe('a deletion', () => {
  it('gives the defaults back once it has lasted', async () => {
    write('harness.yaml', 'max_depth: 1\n');
    write('llm-router.yaml', 'default_provider: demo\n');
    follow({}, { graceMs: 150 });
    unlinkSync(path('harness.yaml'));
    await until(() => depth() === 3);
    expect(live.current.router.default_provider).toBe('demo');
    expect(faults()).toEqual([]);
  });

  it('is told by reload only once it is certain', async () => {
    write('harness.yaml', 'max_depth: 1\n');
    live = new LiveConfiguration(dir, { graceMs: 80 });
    unlinkSync(path('harness.yaml'));
    const reloaded = live.reload();
    expect(depth()).toBe(1);
    await reloaded;
    expect(depth()).toBe(3);
  });
});

describe('the folder', () => {
  it('may appear later', async () => {
    rmSync(dir, { recursive: true });
    follow({ lookMs: 30 });
    mkdirSync(dir);
    write('harness.yaml', 'max_depth: 6\n');
    await until(() => depth() === 6);
  });

  it('that is replaced by another one is followed on', async () => {
    write('harness.yaml', 'max_depth: 1\n');
    follow({ lookMs: 30 });
    renameSync(dir, join(root, 'old'));
    mkdirSync(dir);
    write('harness.yaml', 'max_depth: 2\n');
    await until(() => depth() === 2);
    writeFileSync(join(root, 'old', 'harness.yaml'), 'max_depth: 9\n');
    replace('harness.yaml', 'max_depth: 3\n');
    await until(() => depth() === 3);
    expect(depths).toEqual([2, 3]);
  });

  it('is followed on after the watcher has failed, again and again', async () => {
    const watchers: FSWatcher[] = [];
    follow({
      lookMs: 30,
      watchFolder: (folder, onEvent) => {
        watchers.push(watchFile(folder, { persistent: false }, (_event, name) => onEvent(name)));
        return watchers.at(-1) as FSWatcher;
      },
    });
    for (let failure = 1; failure <= 15; failure++) {
      watchers.at(-1)?.emit('error', Object.assign(new Error('lost'), { code: 'EIO' }));
      await until(() => watchers.length > failure);
    }
    replace('harness.yaml', 'max_depth: 2\n');
    await until(() => depth() === 2);
    expect(said.filter((line) => line.includes('cannot be watched (EIO)'))).toHaveLength(1);
  });

  it('is looked at where it cannot be watched at all', async () => {
    follow({
      lookMs: 30,
      watchFolder: () => {
        throw Object.assign(new Error('no more watches'), { code: 'ENOSPC' });
      },
    });
    replace('harness.yaml', 'max_depth: 2\n');
    await until(() => depth() === 2);
    expect(said[0]).toBe(`${dir} cannot be watched (ENOSPC); it is looked at every 30 ms instead`);
  });

  it('is read no more often for files that are not ours', async () => {
    follow();
    for (const name of ['notes.txt', '.harness.yaml.swp', 'x.tmp']) write(name, 'x');
    write('harness.yaml', 'max_depth: 2\n');
    await until(() => depth() === 2);
    expect(watch?.reads).toBe(2);
  });

  it('that is watched keeps no process alive', () => {
    const before = process.getActiveResourcesInfo();
    follow();
    expect(process.getActiveResourcesInfo()).toEqual(before);
  });
});

describe('reload', () => {
  it('takes what is there at once, and says what is wrong', async () => {
    live = new LiveConfiguration(dir);
    write('harness.yaml', 'max_depth: 2\n');
    await live.reload();
    expect(depth()).toBe(2);
    write('harness.yaml', 'max_depth: x\n');
    await expect(live.reload()).rejects.toThrow(/^configuration\/invalid: .*max_depth must be a whole number/);
    expect(depth()).toBe(2);
  });

  it('changes nothing, and tells nobody, when nothing has changed', async () => {
    write('harness.yaml', 'max_depth: 2\n');
    live = new LiveConfiguration(dir);
    let told = 0;
    live.onChange(() => told++);
    const before = live.current.harness;
    write('harness.yaml', '# the same\nmax_depth: 2\n');
    await live.reload();
    expect(live.current.harness).toBe(before);
    expect(told).toBe(0);
  });
});

it.runIf(process.platform === 'linux')('a device in the place of a file is a fault, and is not read', () => {
  symlinkSync('/dev/zero', path('harness.yaml'));
  expect(() => new LiveConfiguration(dir)).toThrow(/harness\.yaml.*plain file/);
});
