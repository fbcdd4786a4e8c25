import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { HarnessError } from '#libs/contracts';
import { FakeRuntime, run } from '../../test/fake.js';
import { Cli } from '../cli/cli.js';
import type { RuntimeRequest } from '../cli/open-runtime.js';
import { lightProgram } from '../cli/program.js';
import { COMMANDS } from './index.js';

describe('C51 usage', () => {
  it.each([
    [['snd', 'hi'], /unknown command 'snd'\n\(Did you mean send\?\)/],
    [['send', '--modl', 'x', 'hi'], /unknown option '--modl'/],
    [['status'], /missing required argument 'session'/],
    [['status', 'a', 'b'], /too many arguments/],
    [['sessions', '--limit'], /argument missing/],
    [['sessions', '--limit', 'many'], /--limit must be a whole number/],
    [['sessions', '--status', 'workin'], /--status must be .* \(did you mean working\?\)/],
    [['show', 'a b'], /<session> must be a session id/],
    [['completion', 'tcsh'], /<shell> must be bash, zsh or fish/],
    [['help', 'nope'], /unknown command 'nope'/],
    [['functions', 'a b'], /\[id\] must be a function id/],
  ])('%j exits with 2 and says why on standard error only', async (argv, reason) => {
    const { code, stdout, stderr } = await run(argv);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(reason);
    expect(stderr).not.toMatch(/\n\s+at /);
  });

  it('tells usage errors as one JSON line with --json', async () => {
    for (const argv of [
      ['nope', '--json'],
      ['status', '--json'],
      ['send', 'x', '--nope', '--json'],
      ['sessions', '--limit', '0', '--json'],
    ]) {
      const { code, stdout, stderr } = await run(argv);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(JSON.parse(stderr)).toMatchObject({ type: 'error', code: 'cli/usage' });
    }
  });

  it('takes what follows -- as the message, whatever it looks like', async () => {
    const runtime = new FakeRuntime();
    expect((await run(['send', '--allow', 'a::*', '--', '--help', '--json'], { runtime })).code).toBe(0);
    expect(runtime.sent()).toMatchObject({ message: '--help --json', options: { functions: { allow: ['a::*'] } } });
  });

  it('shows help on standard output with 0, and with 2 on standard error when there is no command', async () => {
    for (const argv of [['--help'], ['-h'], ['help'], ['send', '--help'], ['help', 'send'], ['send', 'hi', '-h']]) {
      const { code, stdout, stderr } = await run(argv);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(/^Usage: harness-cli .*[\s\S]*Examples:/);
    }
    const { code, stdout, stderr } = await run([]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('Usage: harness-cli');
  });

  it('prints its version', async () => {
    expect(await run(['--version'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as string });
    expect(await run(['sessions', '-V'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as string });
  });

  it('opens what --url names, with the token of the environment', async () => {
    const asked: RuntimeRequest[] = [];
    const open = (request: RuntimeRequest) => {
      asked.push(request);
      return Promise.reject(new HarnessError('harness/unreachable', 'nobody is there'));
    };
    const result = await run(['sessions', '--url', 'ws://x'], { open, env: { HARNESS_GATEWAY_TOKEN: 'open sesame' } });
    expect(asked).toMatchObject([{ url: 'ws://x', token: 'open sesame', role: 'reader' }]);
    expect(result).toMatchObject({ code: 3, stderr: expect.stringContaining('nobody is there') as string });
  });
});

describe('a data folder that cannot be opened', () => {
  it.each([
    ['harness/store_unwritable', /--data-dir/],
    ['harness/store_newer', /Update harness/],
    ['harness/store_corrupt', /backup/],
    ['harness/storage', /Free some space/],
  ])('%s exits with 3 and says what to do', async (code, advice) => {
    const open = () => Promise.reject(new HarnessError(code, 'that is what is wrong'));
    const result = await run(['sessions'], { open });
    expect(result).toMatchObject({ code: 3, stdout: '' });
    expect(result.stderr).toMatch(/^error: that is what is wrong/);
    expect(result.stderr).toMatch(advice);
    expect(result.stderr).not.toMatch(/\n\s+at /);
    expect((await run(['sessions', '--debug'], { open })).stderr).toMatch(/\n\s+at /);
  });

  it('is closed when a command fails', async () => {
    const runtime = new FakeRuntime();
    expect((await run(['sessions'], { runtime })).code).toBe(3);
    expect(runtime.closes).toHaveLength(1);
  });
});

describe('completion', () => {
  const program = () =>
    lightProgram(
      COMMANDS,
      new Cli(
        { ...process, openRuntime: () => Promise.reject(new Error()), signals: process, exit: () => undefined, now: Date.now } as never,
        'harness-cli',
      ),
      '1.0.0',
    );

  it.each(['bash', 'zsh', 'fish'])('of %s knows every command and option', async (shell) => {
    const { code, stdout } = await run(['completion', shell]);
    expect(code).toBe(0);
    for (const command of program().commands) {
      expect(stdout).toContain(command.name());
      for (const option of command.options) expect(stdout).toContain((option.long ?? '').replace(/^--/, ''));
    }
  });

  it('of bash completes', async () => {
    const { stdout } = await run(['completion', 'bash']);
    const complete = (...words: string[]): string[] =>
      execFileSync(
        'bash',
        [
          '-c',
          `${stdout}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _harness_cli; printf '%s\\n' "\${COMPREPLY[@]}"`,
        ],
        { encoding: 'utf8' },
      )
        .split('\n')
        .filter((word) => word !== '');
    expect(complete('harness-cli', 'se')).toEqual(['send', 'sessions', 'serve']);
    expect(complete('harness-cli', 'send', 'x', '--mo')).toEqual(['--model', '--mode']);
    expect(complete('harness-cli', 'send', '--mode', 'a')).toEqual(['ask', 'agent']);
    expect(complete('harness-cli', 'sessions', '--status', '')).toEqual(['idle', 'working', 'done', 'error']);
    expect(complete('harness-cli', 'completion', 'b')).toEqual(['bash']);
  });
});

it('points to the help of the command that was called', async () => {
  expect((await run(['send', '--nope'])).stderr).toContain('Run `harness-cli send --help`.');
  expect((await run(['nope'])).stderr).toContain('Run `harness-cli --help`, or');
});
