import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { folder, here } from '../cli/harness-cli.js';
import { agentCall } from '../support/scripted-model.js';
import { asks, says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';

let rig: TurnRig | undefined;
afterEach(async () => {
  await rig?.close();
  rig = undefined;
});

/** All files under a folder. */
const filesUnder = (path: string): string[] => readdirSync(path, { recursive: true, encoding: 'utf8' }).sort();

describe('C54 names that are not plain', () => {
  it.each(['a:b', 'C:\\sessions\\one', '../../up', 'con', '名前😀', 'semi;colon&&$HOME'])(
    'a session %j is never a file name',
    async (session) => {
      const [dataDir, work] = [folder(), folder()];
      const before = filesUnder(work);
      const sent = await here(['send', '/say hello', '--session', session, '--data-dir', dataDir]);
      expect(sent).toMatchObject({ code: 0, stdout: 'hello\n' });
      const status = await here(['status', session, '--json', '--data-dir', dataDir]);
      expect(JSON.parse(status.stdout)).toMatchObject({ turn: { session_id: session, status: 'completed' } });
      expect((await here(['show', session, '--data-dir', dataDir])).stdout).toContain('hello');
      expect(filesUnder(dataDir).filter((file) => !/^(config|harness\.db(-wal|-shm)?)$/.test(file))).toEqual([]);
      expect(filesUnder(work)).toEqual(before);
    },
  );

  it.each(['with space', 'line\nbreak', ''])('a session %j is refused, and nothing is written', async (session) => {
    const dataDir = folder();
    const sent = await here(['send', '/say hello', '--session', session, '--data-dir', dataDir]);
    expect(sent).toMatchObject({ code: 2, stdout: '' });
    expect(filesUnder(dataDir)).toEqual([]);
  });

  it('a data folder with spaces and backslashes is used as it is written', async () => {
    const base = folder();
    const dataDir = join(base, 'my data', 'C:\\temp\\new');
    expect((await here(['send', '/say hello', '--session', 's_1', '--data-dir', dataDir])).code).toBe(0);
    expect(readdirSync(dataDir)).toContain('harness.db');
    expect((await here(['sessions', '--json', '--data-dir', dataDir])).stdout).toContain('"s_1"');
  });

  it('a configuration with CRLF and backslashes keeps every character', async () => {
    const [base, dataDir] = [folder(), folder()];
    const root = join(base, 'C:\\work dir\\new');
    mkdirSync(root);
    writeFileSync(join(root, 'note.txt'), 'from the odd folder');
    mkdirSync(join(dataDir, 'config'));
    writeFileSync(join(dataDir, 'config', 'harness.yaml'), `default_max_turns: 7\r\ndefault_filesystem_root: ${root}\r\n`);
    rig = await TurnRig.open({ dataDir });
    expect(rig.runtime.settings.current()).toMatchObject({ default_max_turns: 7, default_filesystem_root: root });
    rig.model.plays(asks(agentCall('c1', 'coder::read-file', { path: 'note.txt' })), says('Read.'));
    const { session_id } = await rig.send('read');
    await rig.until(session_id, 'completed');
    expect(JSON.stringify(await rig.results(session_id))).toContain('from the odd folder');
  });

  it('arguments of a program are not split, quoted or unescaped on the way', async () => {
    rig = await TurnRig.open();
    const args = ['C:\\temp\\new file', 'a "quoted" word', '$HOME', '%PATH%', '', "it's", 'line\r\nbreak', '*'];
    const script = 'process.stdout.write(JSON.stringify(process.argv.slice(1)))';
    const { stdout } = await rig.call<{ stdout: string }>('shell::exec', {
      command: process.execPath,
      args: ['-e', script, '--', ...args],
    });
    expect(JSON.parse(stdout)).toEqual(args);
  });
});
