import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CoderModule } from '../../libs/local/src/coder/index.js';
import { failure, startApp, type TestApp } from '../../libs/local/src/confine/test/app.js';
import type { CommandResult } from '../../libs/local/src/shell/command.js';
import { ShellModule } from '../../libs/local/src/shell/index.js';
import { agentCall, ScriptedModel, text } from '../support/scripted-model.js';
import { TurnRig } from '../support/turn-rig.js';

const KEY = 'sk-test-0123/456+789 "quoted" end';
const OURS = {
  ATTACK_API_KEY: KEY,
  ATTACK_DB: 'postgres://me:pass%20word-1@db.example.org/x',
  GITHUB_PAT: 'pat-0123456789',
  ATTACK_NOTE: 'not secret',
};

let app: TestApp;
beforeAll(async () => {
  Object.assign(process.env, OURS);
  app = await startApp(ShellModule);
});
afterAll(async () => {
  for (const name of Object.keys(OURS)) delete process.env[name];
  await app.close();
});

const exec = (payload: object): Promise<CommandResult> => app.call<CommandResult>('shell::exec', payload);
const node = (script: string, ...args: string[]): Promise<CommandResult> =>
  exec({ command: process.execPath, args: ['-e', script, ...args], timeout_ms: 30_000 });

describe('a command', () => {
  it('gets no variable that is not on the list', async () => {
    const { stdout } = await node('console.log(Object.keys(process.env).join())');
    const expected = /^(PATH|HOME|LANG|TERM|TZ|TMPDIR|USER|LOGNAME|SHELL|LC_\w+|HARNESS_CALL)$/;
    expect(
      stdout
        .trim()
        .split(',')
        .filter((name) => !expected.test(name)),
    ).toEqual([]);
  });

  it.each([
    ['as it is', 'k'],
    ['in the middle of a line', '"x=" + k + ";y"'],
    ['in JSON', 'JSON.stringify({ k })'],
    ['in a query', 'encodeURIComponent(k)'],
    ['in hex', 'Buffer.from(k).toString("hex")'],
    ['in capital hex', 'Buffer.from(k).toString("hex").toUpperCase()'],
    ['in base64', 'Buffer.from(k).toString("base64")'],
    ['in base64 after one byte', 'Buffer.from("1" + k).toString("base64")'],
    ['in base64 after two bytes', 'Buffer.from("12" + k + "x").toString("base64")'],
    ['in base64 for URLs', 'Buffer.from("123" + k + "xyz").toString("base64url")'],
  ])('shows no key that it prints %s', async (_how, print) => {
    // A few characters at the edge of a base64 group may be left; nothing that gives the key away.
    const { stdout, stderr } = await node(`const k = process.argv[1]; console.log(${print}); console.error(${print})`, KEY);
    for (const output of [stdout, stderr]) {
      expect(output).toContain('[hidden]');
      expect(output.replace('[hidden]', '').length).toBeLessThan(16);
    }
  });

  it('shows no password of a URL and no access token', async () => {
    const { stdout } = await node(
      'console.log(process.argv.slice(1).join("\\n"))',
      OURS.ATTACK_DB,
      'pass word-1',
      OURS.GITHUB_PAT,
      OURS.ATTACK_NOTE,
    );
    expect(stdout).toBe('postgres://me:[hidden]@db.example.org/x\n[hidden]\n[hidden]\nnot secret\n');
  });

  it.runIf(process.platform === 'linux')('that reads the environment of another process shows no key', async () => {
    const other = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)'], { env: { ATTACK_API_KEY: KEY }, stdio: 'ignore' });
    try {
      const { stdout } = await exec({ command: `cat /proc/${other.pid}/environ` });
      expect(stdout).toBe('ATTACK_API_KEY=[hidden]\0');
    } finally {
      other.kill('SIGKILL');
    }
  });
});

describe('a file function', () => {
  it('reads no environment of a process', async () => {
    const coder = await startApp(CoderModule);
    coder.values.root = '/';
    try {
      for (const path of ['/proc/self/environ', `/proc/${process.pid}/environ`, '/proc/self/task/../environ'])
        expect(await failure(coder.call('coder::read-file', { path }))).toMatch(/^C211: /);
    } finally {
      await coder.close();
    }
  });
});

describe('a key of the configuration', () => {
  it('is hidden in what a command prints of the file', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'harness-keys-'));
    mkdirSync(join(dataDir, 'config'));
    const file = join(dataDir, 'config', 'llm-router.yaml');
    writeFileSync(file, 'providers:\n  openai:\n    api_key: sk-of-the-operator\n', { mode: 0o600 });
    const model = new ScriptedModel(
      { content: [agentCall('c1', 'shell::exec', { command: `cat ${file}; base64 -w0 ${file}` })] },
      { content: [text('done')] },
    );
    const rig = await TurnRig.open({ model, dataDir });
    const ended = await rig.turn('go');
    const stored = JSON.stringify(await rig.entries(ended.session_id));
    expect(stored).toContain('api_key: [hidden]');
    expect(stored).not.toContain('sk-of-the-operator');
    expect(stored).not.toContain(Buffer.from('api_key: sk-of-the-operator').toString('base64').slice(16, 32));
    await rig.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
});
