import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { failure, startApp, type TestApp } from '../../libs/local/src/confine/test/app.js';
import type { CommandResult } from '../../libs/local/src/shell/command.js';
import { ShellModule } from '../../libs/local/src/shell/index.js';
import { ShellService } from '../../libs/local/src/shell/shell.service.js';
import { WATCHDOG_SCRIPT } from '../../libs/local/src/shell/watchdog.js';
import { ROUNDS, Swapper } from './support/arena.js';
import { gone, isAlive, pidIn } from './support/commands.js';

let app: TestApp;
beforeAll(async () => {
  app = await startApp(ShellModule);
});
afterAll(() => app.close());

const exec = (payload: object, options: { signal?: AbortSignal } = {}): Promise<CommandResult> =>
  app.call<CommandResult>('shell::exec', payload, options);

let files = 0;
const setsid = (left: string): string => `setsid sh -c 'echo $$ > ${left}; exec sleep 300' & while [ ! -s ${left} ]; do sleep 0.01; done`;
/** Ways to leave a process behind; each writes its id to a file and goes on. */
const WAYS: [how: string, script: (file: string) => string][] = [
  ['in the background', (left) => `sh -c 'echo $$ > ${left}; exec sleep 300' & while [ ! -s ${left} ]; do sleep 0.01; done`],
  ['in a group of its own', (left) => `set -m; sh -c 'echo $$ > ${left}; exec sleep 300' & while [ ! -s ${left} ]; do sleep 0.01; done`],
  ['in a session of its own', setsid],
  [
    'as a daemon',
    (left) =>
      `setsid sh -c '(trap "" HUP TERM; sh -c "echo \\$PPID > ${left}"; while :; do sleep 1; done) </dev/null >/dev/null 2>&1 & exit 0'; while [ ! -s ${left} ]; do sleep 0.01; done`,
  ],
  ['stopped', (left) => `setsid sh -c 'echo $$ > ${left}; kill -STOP $$; sleep 300' & while [ ! -s ${left} ]; do sleep 0.01; done`],
];

describe.runIf(process.platform === 'linux')('a command leaves no process', () => {
  it.concurrent.each(WAYS)('%s when it ends', async (_how, way) => {
    const left = `left-${files++}`;
    const result = await exec({ command: `${way(left)}; echo done`, timeout_ms: 30_000 });
    expect(result).toMatchObject({ stdout: 'done\n', exit_code: 0, timed_out: false });
    expect(await isAlive(await pidIn(app.root, left))).toBe(false);
  });

  it.concurrent.each(WAYS)('%s at its time limit', async (_how, way) => {
    const left = `left-${files++}`;
    const result = await exec({ command: `${way(left)}; sleep 300`, timeout_ms: 1_500 });
    expect(result.timed_out).toBe(true);
    expect(await isAlive(await pidIn(app.root, left))).toBe(false);
  });

  it.concurrent.each(WAYS)('%s when the caller gives up', async (_how, way) => {
    const [left, go] = [`left-${files++}`, `go-${files}`];
    const controller = new AbortController();
    const running = failure(
      exec({ command: `${way(left)}; echo 1 > ${go}; sleep 300`, timeout_ms: 60_000 }, { signal: controller.signal }),
    );
    await pidIn(app.root, go);
    controller.abort();
    expect(await running).toContain('invocation_stopped');
    await gone(await pidIn(app.root, left));
  });

  it('that has cleared its environment, as long as its parent is there', async () => {
    await exec({ command: `env -i setsid sh -c 'echo $$ > bare; exec sleep 300' & sleep 300`, timeout_ms: 1_500 });
    expect(await isAlive(await pidIn(app.root, 'bare'))).toBe(false);
  });

  it('by giving its children another mark', async () => {
    await exec({ command: setsid('renamed'), env: { HARNESS_CALL: 'mine' } });
    expect(await isAlive(await pidIn(app.root, 'renamed'))).toBe(false);
  });

  it('of the same user alone: what others run goes on', async () => {
    const other = spawn('sleep', ['300'], { detached: true, stdio: 'ignore' });
    await exec({ command: setsid('beside') });
    expect(await isAlive(other.pid ?? 0)).toBe(true);
    other.kill('SIGKILL');
  });

  it('when harness is killed', async () => {
    const parent = spawn(
      process.execPath,
      [
        '-e',
        `
      const { spawn } = require('node:child_process');
      const dog = spawn('/bin/sh', ['-c', ${JSON.stringify(WATCHDOG_SCRIPT)}], { detached: true, stdio: ['pipe', 'ignore', 'ignore'], env: {} });
      const env = { PATH: process.env.PATH, HARNESS_CALL: 'outer:0123456789abcdef' };
      const command = spawn('/bin/sh', ['-c', 'setsid sh -c "echo \\\\$\\\\$ > orphan; exec sleep 300" & wait'], { detached: true, stdio: 'ignore', env, cwd: ${JSON.stringify(app.root)} });
      dog.stdin.write('add 999999 aaaaaaaaaaaaaaaa\\nadd ' + command.pid + ' 0123456789abcdef\\ndel 999999 aaaaaaaaaaaaaaaa\\n', () => console.log('told'));
      setInterval(() => {}, 1000);`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    await once(parent.stdout, 'data');
    const pid = await pidIn(app.root, 'orphan');
    expect(await isAlive(pid)).toBe(true);
    parent.kill('SIGKILL');
    await gone(pid);
  });

  it('when the application is closed', async () => {
    const other = await startApp(ShellModule);
    const running = other.call<CommandResult>('shell::exec', { command: `${setsid('left')}; sleep 300`, timeout_ms: 60_000 });
    const pid = await pidIn(other.root, 'left');
    await other.app.get(ShellService, { strict: false }).stop();
    await running;
    await other.close();
    expect(await isAlive(pid)).toBe(false);
  });
});

describe('a command', () => {
  it('starts in no folder that is swapped in for its own', async () => {
    mkdirSync(join(app.root, 'flip'));
    writeFileSync(join(app.root, 'flip', 'a.txt'), '');
    const swapper = await Swapper.start(app.root, '/usr');
    for (let round = 0; round < ROUNDS / 2; round++) {
      const result = await exec({ command: 'pwd', args: ['-P'], cwd: 'flip' }).catch(() => null);
      if (result !== null) expect(result.stdout.startsWith(app.root)).toBe(true);
    }
    await swapper.stop();
  });
});
