import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sanitize } from '../../apps/harness-cli/src/render/sanitize.js';
import { here } from '../cli/harness-cli.js';
import { agentCall, ScriptedModel, text } from '../support/scripted-model.js';
import { TurnRig } from '../support/turn-rig.js';

/** What a terminal acts on: controls but tab and newline, what reorders text, and separators that end a line. */
const LIVE = /(?![\t\n])\p{Cc}|[\u202a-\u202e\u2066-\u2069\p{Zl}\p{Zp}\p{Cs}]/u;
const ATTACKS = [
  '\u001b[2J\u001b[H', // clears the screen
  '\u001b]52;c;cm0gLXJm\u0007', // writes the clipboard
  '\u001b]0;title\u001b\\', // sets the title
  '\u001b]8;;http://evil.test\u001b\\link\u001b]8;;\u001b\\', // hides where a link leads
  '\u009b2J\u009d52;c;aGk=\u009c', // the same in one-byte form
  'harmless\rhidden', // writes over what stands there
  'abc\b\b\bxyz',
  '\u001b[6n\u001bP$qm\u001b\\', // asks the terminal, which types the answer
  '\u202eevil\u2066text',
  '\u2028line\u2029',
  '\u0000\u007f\u000e\u000f',
].join(' ');

let rig: TurnRig;
let root: string;
let session: string;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'harness-terminal-'));
  const dataDir = join(root, 'data');
  mkdirSync(join(dataDir, 'config'), { recursive: true });
  writeFileSync(join(dataDir, 'config', 'confine.yaml'), `root: ${root}\n`);
  const name = ATTACKS.replace(/[\0/]/g, '').slice(0, 80);
  writeFileSync(join(root, name), ATTACKS);
  const model = new ScriptedModel(
    { content: [agentCall('c1', 'shell::exec', { command: 'cat', args: [], stdin: ATTACKS })] },
    { content: [agentCall('c2', 'coder::read-file', { path: name })] },
    { content: [agentCall('c3', 'coder::list-folder', {})] },
    { content: [agentCall('c4', `no::such${ATTACKS}`, { [ATTACKS]: ATTACKS })] },
    { content: [text(ATTACKS)] },
  );
  rig = await TurnRig.open({ model, dataDir });
  session = (await rig.turn(`see ${ATTACKS}`)).session_id;
});
afterAll(async () => {
  await rig.close();
  rmSync(root, { recursive: true, force: true });
});

describe('what a command, a file or a model gives cannot act on the terminal', () => {
  it('is there at all', async () => {
    expect(JSON.stringify(await rig.entries(session))).toContain('\\u001b[2J');
  });

  it.each([
    ['show', () => ['show', session]],
    ['show --json', () => ['show', session, '--json']],
    ['sessions', () => ['sessions']],
    ['sessions --json', () => ['sessions', '--json']],
    ['status', () => ['status', session]],
    ['status --json', () => ['status', session, '--json']],
  ])('through %s', async (_what, argv) => {
    const { stdout, stderr, code } = await here([...argv(), '--data-dir', rig.dataDir]);
    expect(code).toBe(0);
    expect(stdout).not.toMatch(LIVE);
    expect(stderr).not.toMatch(LIVE);
  });

  it.each([
    ['a command', () => [ATTACKS]],
    ['a session', () => ['show', ATTACKS]],
    ['an option', () => ['send', 'hi', '--allow', ATTACKS]],
  ])('through the error about %s of that name', async (_what, argv) => {
    const { stdout, stderr } = await here([...argv(), '--data-dir', rig.dataDir]);
    expect(stdout + stderr).not.toMatch(LIVE);
  });

  it('in any character of Unicode', () => {
    let all = '';
    for (let code = 0; code < 0x3000; code++) all += String.fromCodePoint(code);
    expect(sanitize(all)).not.toMatch(LIVE);
  });
});
