import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { closeTo, either } from './close.js';
import { dataDir } from './data-dir.js';
import { readMessage } from './message.js';
import { SendInput } from './send.input.js';
import { checked } from './validate.js';
import { textOrFile, wholeNumber } from './values.js';

const stdin = (...chunks: (string | Uint8Array)[]): PassThrough => PassThrough.from(chunks) as PassThrough;
const terminal = Object.assign(new PassThrough(), { isTTY: true });

describe('the message', () => {
  it('is the arguments, joined', async () => {
    expect(await readMessage(['what', 'is', 'this?'], stdin('not read'))).toBe('what is this?');
  });

  it('comes from standard input for - and when it is piped without arguments, cut anywhere in a character', async () => {
    const bytes = Buffer.from('grüße 👍\n');
    expect(await readMessage(['-'], stdin(bytes.subarray(0, 3), bytes.subarray(3, 9), bytes.subarray(9)))).toBe('grüße 👍');
    expect(await readMessage([], stdin('two\nlines\r\n'))).toBe('two\nlines');
  });

  it.each([
    ['nothing', [], terminal, /no message/],
    ['blanks', [' ', ' '], terminal, /no message/],
    ['empty input', [], stdin('\n'), /is empty/],
    ['bytes that are no text', ['-'], stdin(new Uint8Array([0xff, 0xfe])), /UTF-8/],
    ['a huge input', ['-'], stdin(new Uint8Array(8 * 1024 * 1024), 'x'), /larger than 8 MB/],
  ])('refuses %s', async (_what, args, input, reason) => {
    await expect(readMessage(args, input)).rejects.toThrow(reason);
  });
});

describe('the data folder', () => {
  it.each([
    ['./x', { HARNESS_DATA_DIR: '/b' }, resolve('x')],
    [undefined, { HARNESS_DATA_DIR: '/b', XDG_DATA_HOME: '/c' }, '/b'],
    [undefined, { XDG_DATA_HOME: '/c', HOME: '/h' }, '/c/harness'],
    [undefined, { XDG_DATA_HOME: 'relative', HOME: '/h' }, '/h/.local/share/harness'],
    [undefined, { HARNESS_DATA_DIR: '', HOME: '/h' }, '/h/.local/share/harness'],
  ])('%j with %j is %s', (option, env, path) => {
    expect(dataDir(option, env).path).toBe(path);
  });

  it('is not empty', () => {
    expect(() => dataDir(' ', {})).toThrow(/--data-dir/);
  });
});

describe('the options of send', () => {
  const fault = (values: object): string => {
    try {
      checked(SendInput, values as Record<string, unknown>);
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };

  it('takes good ones, and leaves defaults where there are none', () => {
    const input = checked(SendInput, { session: 's_1', allow: ['coder::*'], maxTurns: wholeNumber('3'), mode: 'plan', model: undefined });
    expect(input).toMatchObject({ session: 's_1', allow: ['coder::*'], maxTurns: 3, mode: 'plan', wait: true, json: false });
  });

  it.each([
    [{ maxTurns: wholeNumber('abc') }, /--max-turns.*whole number/],
    [{ maxTurns: wholeNumber('0') }, /--max-turns/],
    [{ maxTurns: wholeNumber('1.5') }, /--max-turns/],
    [{ mode: 'agnet' }, /--mode must be plan, ask or agent, got "agnet" \(did you mean agent\?\)/],
    [{ thinking: 'lots' }, /--thinking must be/],
    [{ expose: 'x' }, /--expose must be agent_trigger or native/],
    [{ strategy: 'x' }, /--strategy must be/],
    [{ session: 'a b' }, /--session must be a session id/],
    [{ session: '' }, /--session must be a session id/],
    [{ model: 'a b' }, /--model/],
    [{ provider: 'a/b' }, /--provider/],
    [{ allow: ['ok::*', '!x'] }, /--allow "!x" is refused/],
    [{ deny: ['a\nb'] }, /--deny "a\\nb" is refused: it holds a newline/],
    [{ title: 'x'.repeat(501) }, /--title/],
  ])('refuses %j', (values, reason) => {
    expect(fault(values)).toMatch(reason);
  });

  it('names every fault at once', () => {
    expect(fault({ mode: 'x', maxTurns: 0 }).split('\n')).toHaveLength(2);
  });
});

describe('a text or a file', () => {
  it('reads the file that an @ names, and says why it cannot', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cli-input-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'p.txt'), 'be brief');
    expect(await textOrFile('--system', `@${join(folder, 'p.txt')}`)).toBe('be brief');
    expect(await textOrFile('--system', 'be long')).toBe('be long');
    await expect(textOrFile('--system', `@${join(folder, 'none')}`)).rejects.toThrow(/no such file/);
    await expect(textOrFile('--system', `@${folder}`)).rejects.toThrow(/folder/);
    await expect(textOrFile('--system', '@/dev/zero')).rejects.toThrow(/not a plain file/);
  });
});

describe('names that were probably meant', () => {
  it('finds near ones and no far ones', () => {
    expect(closeTo('claude-sonet', ['claude-sonnet', 'gpt', 'claude-haiku'])).toEqual(['claude-sonnet']);
    expect(closeTo('agnet', ['agent', 'plan', 'ask'])).toEqual(['agent']);
    expect(closeTo('zzzzzzz', ['agent', 'plan'])).toEqual([]);
    expect(either(['a', 'b', 'c'])).toBe('a, b or c');
  });
});
