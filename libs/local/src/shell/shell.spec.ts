import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { failure, longestBlock, startApp, type TestApp } from '../confine/test/app.js';
import type { CommandResult } from './command.js';
import { commandEnvironment } from './environment.js';
import { OutputBuffer } from './output.js';
import { secretsOf, withoutSecrets } from './secrets.js';
import { ShellModule } from './shell.module.js';
import { ShellService } from './shell.service.js';
import { WATCHDOG_SCRIPT } from './watchdog.js';

let app: TestApp;
beforeAll(async () => {
  app = await startApp(ShellModule);
});
afterAll(() => app.close());

const exec = (payload: object, options: { signal?: AbortSignal } = {}): Promise<CommandResult> =>
  app.call<CommandResult>('shell::exec', payload, options);

/** True while the process is there and not a zombie. */
async function isAlive(pid: number): Promise<boolean> {
  try {
    return !/^\d+ \(.*\) [ZX]/.test(await readFile(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
async function gone(pid: number): Promise<void> {
  for (let i = 0; i < 100 && (await isAlive(pid)); i++) await pause(20);
  expect(await isAlive(pid)).toBe(false);
}
async function pidIn(file: string): Promise<number> {
  for (let i = 0; i < 200; i++) {
    const pid = Number(await readFile(join(app.root, file), 'utf8').catch(() => ''));
    if (pid > 0) return pid;
    await pause(10);
  }
  throw new Error(`${file} was not written`);
}

describe('shell::exec', () => {
  it('runs a command line with a shell, and a program without one', async () => {
    expect(await exec({ command: 'echo out; echo err >&2; pwd; exit 3' })).toMatchObject({
      stdout: `out\n${app.root}\n`,
      stderr: 'err\n',
      exit_code: 3,
      timed_out: false,
      stdout_truncated: false,
      stderr_truncated: false,
    });
    expect((await exec({ command: 'printf', args: ['%s|', '$HOME; rm', '*', 'a b'] })).stdout).toBe('$HOME; rm|*|a b|');
    expect((await exec({ command: 'cat', args: [], stdin: 'ünput' })).stdout).toBe('ünput');
    expect((await exec({ command: 'cat' })).stdout).toBe('');
    expect((await exec({ command: 'exit 0', stdin: 'x'.repeat(1_000_000) })).exit_code).toBe(0);
  });

  it('C55 gives a command none of our secrets', async () => {
    process.env['TEST_API_KEY'] = 'secret-1';
    process.env['GITHUB_TOKEN'] = 'secret-2';
    process.env['LC_TEST'] = 'kept';
    try {
      const { stdout } = await exec({ command: 'env', args: [], env: { GIVEN: 'yes', MY_TOKEN: 'mine' } });
      expect(stdout).not.toMatch(/secret-[12]/);
      expect(stdout).toMatch(/^PATH=/m);
      expect(stdout).toMatch(/^LC_TEST=kept$/m);
      expect(stdout).toMatch(/^GIVEN=yes$/m);
      expect(stdout).toMatch(/^MY_TOKEN=mine$/m);
    } finally {
      for (const name of ['TEST_API_KEY', 'GITHUB_TOKEN', 'LC_TEST']) delete process.env[name];
    }
    expect(commandEnvironment({ PATH: 'p', AWS_SECRET_ACCESS_KEY: 's', ANTHROPIC_API_KEY: 'k', CI: '1' }, ['CI'], {}, 'linux')).toEqual({
      PATH: 'p',
      CI: '1',
    });
    expect(commandEnvironment({ Path: 'p', SystemRoot: 'w' }, [], {}, 'win32')).toEqual({ Path: 'p', SystemRoot: 'w' });
  });

  it('C55 hides our secrets in what a command prints, as they are and in base64', () => {
    const own = { ANTHROPIC_API_KEY: 'sk-ant-1234567890', SHORT_TOKEN: 'abc', PATH: '/usr/bin:/usr/local/bin' };
    const printed = `a sk-ant-1234567890 c2stYW50LTEyMzQ1Njc4OTA abc /usr/bin:/usr/local/bin`;
    expect(withoutSecrets(printed, secretsOf(own, []))).toBe('a [hidden] [hidden] abc /usr/bin:/usr/local/bin');
    expect(withoutSecrets(printed, secretsOf(own, ['ANTHROPIC_API_KEY']))).toBe(printed);
  });

  it('starts inside the root only', async () => {
    await mkdir(join(app.root, 'sub'));
    await symlink('/etc', join(app.root, 'away'));
    await writeFile(join(app.root, 'file'), '');
    expect((await exec({ command: 'pwd', cwd: 'sub' })).stdout).toBe(`${join(app.root, 'sub')}\n`);
    for (const [cwd, code] of [
      ['..', 'S215'],
      ['/etc', 'S215'],
      ['away', 'S215'],
      ['none', 'S211'],
      ['file', 'S212'],
      ['a\0b', 'S210'],
    ]) {
      expect(await failure(exec({ command: 'pwd', cwd }))).toMatch(new RegExp(`^${code}: cwd: `));
    }
    app.values.root = 'off';
    expect(await failure(exec({ command: 'pwd' }))).toMatch(/^S215: /);
    app.values.root = app.root;
  });

  it('says what is wrong with a request', async () => {
    expect(await failure(exec({}))).toMatch(/^S210: command is missing/);
    expect(await failure(exec({ command: 'x', args: 'y' }))).toMatch(/^S210: /);
    expect(await failure(exec({ command: 'no-such-program-0f', args: [] }))).toMatch(/^S211: there is no command no-such-program-0f/);
    expect(await failure(exec({ command: '/etc/passwd', args: [] }))).toMatch(/^S215: /);
    expect(await failure(exec({ command: 'a\0b' }))).toMatch(/^S210: /);
    expect(await failure(exec({ command: 'x', target: { kind: 'sandbox', sandbox_id: 's' } }))).toMatch(/^S300: /);
    expect(await exec({ command: 'no-such-program-0f' })).toMatchObject({ exit_code: 127 });
  });

  it('C53 ends the whole group at the timeout, also what ignores TERM', async () => {
    const result = await exec({
      command: `sh -c 'trap "" TERM; echo $$ > stubborn; while :; do sleep 1; done' & sleep 100`,
      timeout_ms: 1_500,
    });
    expect(result).toMatchObject({ timed_out: true, exit_code: null, signal: 'SIGTERM' });
    expect(result.duration_ms).toBeLessThan(6_000);
    await gone(await pidIn('stubborn'));
  });

  it('lets a command end by itself after TERM', async () => {
    const result = await exec({ command: `trap 'echo tidy; exit 4' TERM; echo up; while :; do sleep 0.05; done`, timeout_ms: 300 });
    expect(result).toMatchObject({ timed_out: true, exit_code: 4, stdout: 'up\ntidy\n' });
  });

  it('C53 ends everything when the caller gives up', async () => {
    const controller = new AbortController();
    const running = failure(
      exec({ command: 'sleep 100 & echo $! > grandchild; sleep 100', timeout_ms: 60_000 }, { signal: controller.signal }),
    );
    const pid = await pidIn('grandchild');
    controller.abort();
    expect(await running).toContain('invocation_stopped');
    await gone(pid);
  });

  it('ends what a command leaves behind in its group and answers soon', async () => {
    const result = await exec({ command: 'sleep 100 & echo $! > left; echo done' });
    expect(result).toMatchObject({ stdout: 'done\n', exit_code: 0, timed_out: false });
    expect(result.duration_ms).toBeLessThan(3_000);
    await gone(await pidIn('left'));
  });

  it('does not wait for a process that left the group and holds the pipe', async () => {
    const result = await exec({
      command: 'setsid sh -c "echo \\$\\$ > escaped; exec sleep 30" & while [ ! -s escaped ]; do sleep 0.01; done; echo done',
    });
    const pid = await pidIn('escaped');
    process.kill(pid, 'SIGKILL');
    expect(result).toMatchObject({ stdout: 'done\n', exit_code: 0 });
    expect(result.duration_ms).toBeLessThan(3_000);
  });

  it('keeps the two ends of a long output and says what is left out', async () => {
    let result: CommandResult | undefined;
    const blocked = await longestBlock(async () => {
      result = await exec({ command: 'node', args: ['-e', 'process.stdout.write("HEAD" + "é".repeat(10_000_000) + "TAIL")'] });
    });
    expect(result?.stdout).toMatch(/^HEADé/);
    expect(result?.stdout).toMatch(/éTAIL$/);
    expect(result?.stdout).toMatch(/\n\[\.\.\. \d+ of 20000008 bytes left out \.\.\.\]\n/);
    expect(result?.stdout).not.toContain('\ufffd');
    expect(Buffer.byteLength(result?.stdout ?? '')).toBeLessThan(1_048_576 + 100);
    expect(result).toMatchObject({ stdout_truncated: true, stderr_truncated: false, exit_code: 0 });
    expect(blocked).toBeLessThan(100);
  });

  it('ends a command that floods', async () => {
    app.values.max_command_output_bytes = 10_000;
    const result = await exec({ command: 'yes', args: [], timeout_ms: 60_000 });
    app.values.max_command_output_bytes = 1_048_576;
    expect(result.stderr).toContain('it wrote more than 640000 bytes');
    expect(result).toMatchObject({ timed_out: false, stdout_truncated: true, exit_code: null });
  });

  it('caps the timeout', async () => {
    expect(await failure(exec({ command: 'x', timeout_ms: 0 }))).toMatch(/^S210: /);
    expect(await exec({ command: 'echo hi', timeout_ms: 99_999_999 })).toMatchObject({ exit_code: 0 });
  });

  it('runs many at once', async () => {
    const results = await Promise.all(Array.from({ length: 20 }, (_, i) => exec({ command: `echo ${i}` })));
    expect(results.map((r) => r.stdout)).toEqual(Array.from({ length: 20 }, (_, i) => `${i}\n`));
  });

  it('C53 leaves nothing running when the application closes', async () => {
    const other = await startApp(ShellModule);
    const running = other.call<CommandResult>('shell::exec', { command: 'echo $$ > here; sleep 100', timeout_ms: 60_000 });
    let pid = 0;
    for (let i = 0; i < 200 && !(pid > 0); i++) {
      pid = Number(await readFile(join(other.root, 'here'), 'utf8').catch(() => ''));
      await pause(10);
    }
    await other.app.get(ShellService, { strict: false }).stop();
    await other.close();
    expect(await running).toMatchObject({ signal: 'SIGTERM' });
    await gone(pid);
  });

  it('C53 leaves nothing running when this process is killed', async () => {
    const parent = spawn(
      process.execPath,
      [
        '-e',
        `
      const { spawn } = require('node:child_process');
      const dog = spawn('/bin/sh', ['-c', ${JSON.stringify(WATCHDOG_SCRIPT)}], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
      const sleeper = spawn('/bin/sh', ['-c', 'sleep 100 & wait'], { detached: true, stdio: 'ignore' });
      const other = spawn('/bin/sh', ['-c', 'exit 0'], { detached: true, stdio: 'ignore' });
      dog.stdin.write('add ' + other.pid + ' a\\nadd ' + sleeper.pid + ' b-mark-of-nobody\\ndel ' + other.pid + ' a\\n', () => console.log(sleeper.pid));
      setInterval(() => {}, 1000);`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [line] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = Number(line.toString());
    expect(await isAlive(pid)).toBe(true);
    parent.kill('SIGKILL');
    await gone(pid);
  });
});

describe('OutputBuffer', () => {
  it('gives back what fits byte for byte', () => {
    const buffer = new OutputBuffer(10);
    for (const byte of Buffer.from('aéé😀')) buffer.push(Buffer.from([byte]));
    expect(buffer.text()).toBe('aéé😀');
    expect(buffer.truncated).toBe(false);
    buffer.push(Buffer.from('éx'));
    expect(buffer.truncated).toBe(true);
    expect(buffer.text()).toBe('aéé\n[... 4 of 12 bytes left out ...]\néx');
  });
});
