import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { DATABASE_FILE } from '#libs/local';
import { CLI, cli, ensureBuilt, eventsOf, folder, here, type Result, ROOT, Running, start, statusOf } from './harness-cli.js';
import { canMount, SmallDisk } from './small-disk.js';
import { messagesOf } from './vendor-cli.js';

beforeAll(ensureBuilt, 180_000);

/** Long enough for a machine that is busy with other things. */
const PATIENCE_MS = 120_000;
const FULL = /the disk that holds \S+ is full; nothing was written\. Free some space and try again\./;
const STACK = /\n\s+at /;

describe.skipIf(!canMount)('a full disk (needs root and mount)', () => {
  it(
    'refuses a send, and loses nothing that was there',
    async () => {
      const disk = SmallDisk.make();
      const dataDir = join(disk.path, 'data');
      expect((await here(['send', '/say first', '--session', 's_full', '--data-dir', dataDir])).code).toBe(0);
      disk.fill();
      const refused = await cli(['send', '/say second', '--session', 's_full', '--data-dir', dataDir]);
      expect(refused).toMatchObject({ code: 3, stdout: '' });
      expect(refused.stderr).toMatch(FULL);
      expect(refused.stderr).toMatch(/harness-cli doctor/);
      expect(refused.stderr).not.toMatch(STACK);
      const json = await here(['send', '/say second', '--session', 's_full', '--json', '--data-dir', dataDir]);
      expect({ code: json.code, stderr: json.stderr }).toEqual({ code: 3, stderr: '' });
      expect(JSON.parse(json.stdout)).toMatchObject({
        type: 'error',
        code: 'harness/storage',
        message: expect.stringMatching(FULL) as string,
      });
      expect(await here(['send', '/say hi', '--no-wait', '--data-dir', join(disk.path, 'new')])).toMatchObject({ code: 3, stdout: '' });
      disk.free();
      expect((await here(['send', '/say second', '--session', 's_full', '--data-dir', dataDir])).code).toBe(0);
      expect((await messagesOf(dataDir, 's_full')).map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    },
    PATIENCE_MS,
  );

  it(
    'refuses a send into a turn that runs, which waits with its answer',
    async () => {
      const disk = SmallDisk.make();
      const words = Array.from({ length: 40 }, (_, n) => `w${n}`).join(' ');
      const send = start(['send', `/say ${words}`, '--session', 's_full', '--json', '--data-dir', disk.path], {
        env: { DEMO_DELAY_MS: '40' },
      });
      await send.until('stdout', /"delta":"w3 /);
      disk.fill();
      const other = await here(['send', '/say joined', '--session', 's_full', '--json', '--data-dir', disk.path]);
      expect({ code: other.code, said: JSON.parse(other.stdout) as unknown }).toMatchObject({ code: 3, said: { code: 'harness/storage' } });
      await send.until('stdout', /The turn waits, because it cannot be stored/);
      expect(lines(send, 'step_started')).toBe(1);
      disk.free();
      const { code, stdout, stderr } = await send.result;
      expect(code).toBe(0);
      expect(stderr).not.toMatch(STACK);
      const events = eventsOf(stdout);
      expect(events.map((event) => (event.type === 'text_delta' ? event.delta : '')).join('')).toBe(words);
      expect(events.at(-1)).toMatchObject({ type: 'turn_finished', status: 'completed', steps: 1 });
      expect(await messagesOf(disk.path, 's_full')).toMatchObject([
        { role: 'user' },
        { role: 'assistant', stop_reason: 'end', content: [{ type: 'text', text: words }] },
      ]);
    },
    PATIENCE_MS,
  );

  it(
    'keeps a function from being called, and the result of one that was',
    async () => {
      const [disk, work] = [SmallDisk.make(), folder()];
      const shell = (script: string): string => `/call shell::exec ${JSON.stringify({ command: 'bash', args: ['-c', script] })}`;
      const script = [
        shell('echo x >> first; while [ ! -e go ]; do sleep 0.05; done; head -c 20000 /dev/urandom | base64 -w0; echo THE-END'),
        shell('echo x >> second'),
      ].join('\n');
      const send = start(['send', '-', '--allow', 'shell::exec', '--session', 's_full', '--data-dir', disk.path], {
        cwd: work,
        input: script,
      });
      await vi.waitFor(() => expect(existsSync(join(work, 'first'))).toBe(true), { timeout: 60_000, interval: 20 });
      disk.fill();
      writeFileSync(join(work, 'go'), '');
      await send.until('stderr', /The turn waits, because it cannot be stored: the disk/);
      expect(existsSync(join(work, 'second'))).toBe(false);
      disk.free();
      const { code, stderr } = await send.result;
      expect(code).toBe(0);
      expect(stderr.trimEnd().split('\n').at(-1)).toMatch(/^completed · 3 steps · 2 calls/);
      expect([readFileSync(join(work, 'first'), 'utf8'), readFileSync(join(work, 'second'), 'utf8')]).toEqual(['x\n', 'x\n']);
      const results = (await messagesOf(disk.path, 's_full')).filter(({ role }) => role === 'function_result');
      expect(results).toMatchObject([{ is_error: false }, { is_error: false }]);
      expect(JSON.stringify(results[0])).toContain('THE-END');
    },
    PATIENCE_MS,
  );

  it(
    'does not keep a process from ending, and the next one goes on',
    async () => {
      const disk = SmallDisk.make();
      const send = start(['send', `/say ${'word '.repeat(30)}end`, '--session', 's_full', '--data-dir', disk.path], {
        env: { DEMO_DELAY_MS: '20' },
      });
      await send.until('stdout', /word/);
      disk.fill();
      await send.until('stderr', /The turn waits, because it cannot be stored/);
      send.signal('SIGTERM');
      const { code, stderr } = await send.result;
      expect(code).toBe(143);
      expect(stderr).not.toMatch(STACK);
      disk.free();
      const serve = start(['serve', '--data-dir', disk.path]);
      await serve.until('stdout', /ready/);
      expect((await here(['status', 's_full', '--watch', '--data-dir', disk.path])).code).toBe(0);
      serve.signal('SIGTERM');
      expect((await serve.result).code).toBe(0);
      expect((await statusOf(disk.path, 's_full')).turn).toMatchObject({ status: 'completed' });
      expect(await messagesOf(disk.path, 's_full')).toHaveLength(2);
    },
    PATIENCE_MS,
  );
});

const NOBODY = ['--reuid', '65534', '--regid', '65534', '--clear-groups'];
const canBeNobody = process.getuid?.() === 0 && spawnSync('setpriv', [...NOBODY, 'test', '-r', join(ROOT, 'package.json')]).status === 0;

/** Runs the CLI as a user who owns nothing. */
const asNobody = (argv: readonly string[]): Promise<Result> => {
  const env = { PATH: process.env['PATH'], HOME: '/nonexistent' };
  return new Running(spawn('setpriv', [...NOBODY, process.execPath, CLI, ...argv], { env })).result;
};

describe.skipIf(!canBeNobody)('a data folder of another user (needs root and setpriv)', () => {
  it(
    'is refused, whether it may be read or not, and left as it is',
    async () => {
      const base = folder();
      chmodSync(base, 0o755);
      const dataDir = join(base, 'data');
      expect((await here(['send', '/say first', '--session', 's_own', '--data-dir', dataDir])).code).toBe(0);
      const path = join(dataDir, DATABASE_FILE);
      const before = readFileSync(path);
      for (const mode of [0o755, 0o700]) {
        chmodSync(dataDir, mode);
        for (const argv of [
          ['send', '/say second', '--data-dir', dataDir],
          ['show', 's_own', '--data-dir', dataDir],
          ['send', '/say second', '--data-dir', join(base, 'new')],
        ]) {
          const result = await asNobody(argv);
          expect(result).toMatchObject({ code: 3, stdout: '' });
          expect(result.stderr).toMatch(/^error: the data folder \S+ cannot be used: it may not be written\n.*--data-dir/);
        }
      }
      expect(readdirSync(base)).toEqual(['data']);
      expect(readdirSync(dataDir)).toEqual([DATABASE_FILE]);
      expect(readFileSync(path).equals(before)).toBe(true);
    },
    PATIENCE_MS,
  );
});

describe('a database', () => {
  const PAGE = 4096;
  it.each<[string, string[], (bytes: Buffer) => Buffer, RegExp]>([
    ['with broken pages', ['send', '/say second'], breakPages, /is not a usable database .*store_corrupt/],
    ['with broken pages', ['show', 's_own'], breakPages, /malformed/],
    ['that was cut off', ['send', '/say second'], (bytes) => bytes.subarray(0, PAGE + 700), /is not a usable database .*store_corrupt/],
    ['of a newer version', ['send', '/say second'], (bytes) => withVersion(bytes, 9_999), /written by a newer version/],
    ['of a newer version', ['show', 's_own'], (bytes) => withVersion(bytes, 9_999), /written by a newer version/],
  ])(
    '%s is refused and left as it is: %j',
    async (_what, argv, harm, reason) => {
      const dataDir = folder();
      expect((await here(['send', '/say first', '--session', 's_own', '--data-dir', dataDir])).code).toBe(0);
      const path = join(dataDir, DATABASE_FILE);
      const harmed = harm(readFileSync(path));
      writeFileSync(path, harmed);
      const result = await here([...argv, '--data-dir', dataDir]);
      expect(result).toMatchObject({ code: 3, stdout: '' });
      expect(result.stderr).toMatch(reason);
      expect(result.stderr).toMatch(/^(Update harness|The file was left as it is)/m);
      expect(result.stderr).not.toMatch(STACK);
      const json = await here([...argv, '--json', '--data-dir', dataDir]);
      expect(JSON.parse(json.stdout)).toMatchObject({ type: 'error', message: expect.stringMatching(/./) as string });
      expect(readFileSync(path).equals(harmed)).toBe(true);
      expect(readdirSync(dataDir)).toEqual([DATABASE_FILE]);
    },
    PATIENCE_MS,
  );

  function breakPages(bytes: Buffer): Buffer {
    const broken = Buffer.from(bytes);
    for (let at = PAGE; at < broken.length; at += PAGE) broken.fill(0xee, at, at + 200);
    return broken;
  }

  /** The version of the schema is in the header of the file. */
  function withVersion(bytes: Buffer, version: number): Buffer {
    const newer = Buffer.from(bytes);
    newer.writeUInt32BE(version, 60);
    return newer;
  }
});

/** How many events of a type `send --json` has told. */
const lines = (send: Running, type: string): number => send.stdout.split(`{"type":"${type}"`).length - 1;
