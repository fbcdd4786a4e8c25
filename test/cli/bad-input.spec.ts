import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { DATABASE_FILE } from '#libs/local';
import { folder, here } from './harness-cli.js';

describe('a data folder', () => {
  it('that cannot be written is refused', async () => {
    const base = folder();
    writeFileSync(join(base, 'file'), 'x');
    const result = await here(['send', 'hi', '--data-dir', join(base, 'file', 'data')]);
    expect(result).toMatchObject({ code: 3, stdout: '' });
    expect(result.stderr).toMatch(/^error: [\s\S]*--data-dir/m);
    expect(result.stderr).not.toMatch(/\n\s+at /);
  });

  it.each([
    [
      'of a newer version',
      (path: string) => {
        const db = new Database(path);
        db.pragma('journal_mode = WAL');
        db.exec('CREATE TABLE t (n)');
        db.pragma('user_version = 9999');
        db.close();
      },
      /newer/i,
    ],
    ['that is corrupt', (path: string) => writeFileSync(path, 'this is no database, '.repeat(500)), /corrupt|not a database|damaged/i],
  ])('%s is refused and left as it is', async (_what, make, reason) => {
    const dataDir = folder();
    const path = join(dataDir, DATABASE_FILE);
    make(path);
    const before = readFileSync(path);
    const result = await here(['sessions', '--data-dir', dataDir]);
    expect(result).toMatchObject({ code: 3, stdout: '' });
    expect(result.stderr).toMatch(reason);
    expect(result.stderr).not.toMatch(/\n\s+at /);
    expect(readFileSync(path).equals(before)).toBe(true);
    const doctor = await here(['doctor', '--data-dir', dataDir]);
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toMatch(/✗ store/);
  });

  it('with a wrong configuration is refused, naming the file', async () => {
    const dataDir = folder();
    mkdirSync(join(dataDir, 'config'));
    writeFileSync(join(dataDir, 'config', 'harness.yaml'), 'default_max_turns: many\n');
    const result = await here(['sessions', '--data-dir', dataDir]);
    expect(result.code).toBe(2);
    expect(result.stderr).toMatch(/harness\.yaml[\s\S]*default_max_turns/);
  });
});

describe('C51 input that is refused writes nothing', () => {
  it.each([
    [['send', 'hi', '--allow', '**'], 2, /--allow "\*\*" is refused/],
    [['send', 'hi', '--allow', ''], 2, /it is empty/],
    [['send', 'hi', '--allow', '!x'], 2, /`!`/],
    [['send', 'hi', '--nope'], 2, /unknown option/],
    [['send', '--mode', 'plan'], 2, /standard input is empty/],
    [['sned', 'hi'], 2, /Did you mean send/],
  ])('%j', async (argv, code, reason) => {
    const base = folder();
    const result = await here(argv, { stdin: '', env: { XDG_DATA_HOME: join(base, 'xdg') } });
    expect(result).toMatchObject({ code, stdout: '' });
    expect(result.stderr).toMatch(reason);
    expect(readdirSync(base)).toEqual([]);
  });

  it.each([
    [['send', 'hi', '--provider', 'opena1'], 2, /no provider opena1; did you mean openai\?/],
    [['send', 'hi', '--model', 'no-such-model-at-all'], 2, /no provider offers the model/],
    [['send', 'hi', '--provider', 'anthropic'], 3, /provider anthropic has no key\nSet the environment variable ANTHROPIC_API_KEY/],
    [['status', 's_none'], 2, /no session s_none/],
    [['stop', 's_none'], 2, /no session s_none/],
    [['show', 's_none'], 2, /no session s_none/],
    [['functions', 'coder::raed-file'], 2, /did you mean coder::read-file\?/],
  ])('%j, with a data folder', async (argv, code, reason) => {
    const dataDir = folder();
    const result = await here([...argv, '--data-dir', dataDir]);
    expect(result).toMatchObject({ code, stdout: '' });
    expect(result.stderr).toMatch(reason);
    expect((await here(['sessions', '--json', '--data-dir', dataDir])).stdout).toBe('');
  });
});

describe('C55 a key', () => {
  it('is nowhere to be found, even when the provider sends it back', async () => {
    const key = 'sk-ant-api03-Zm9vYmFyYmF6cXV4MDEyMzQ1Njc4OWFiY2RlZg';
    const server = createServer((request, response) => {
      response.writeHead(401, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify({
          type: 'error',
          error: { type: 'authentication_error', message: `invalid x-api-key: ${String(request.headers['x-api-key'])}` },
        }),
      );
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    onTestFinished(() => {
      server.close();
    });
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const dataDir = folder();
    const env = { ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: base };
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const sent = await here(['send', 'hi', '--session', 's_key', '--debug', '--data-dir', dataDir], { env });
    expect(sent.code).toBe(1);
    const others = await Promise.all(
      [['status', 's_key', '--json'], ['show', 's_key', '--json'], ['models', '--json'], ['doctor']].map((argv) =>
        here([...argv, '--data-dir', dataDir], { env }),
      ),
    );
    const all = [sent, ...others].map(({ stdout, stderr }) => stdout + stderr).join('\n') + filesUnder(dataDir);
    expect(all).toContain('s_key');
    expect(all).not.toContain(key.slice(13, 30));
  });
});

const filesUnder = (path: string): string =>
  readdirSync(path, { recursive: true, encoding: 'utf8' })
    .map((name) => join(path, name))
    .filter((file) => statSync(file).isFile())
    .map((file) => readFileSync(file, 'latin1'))
    .join('\n');
