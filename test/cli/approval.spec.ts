import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt, eventsOf, folder, here, start, statusOf } from './harness-cli.js';
import { startInTerminal } from './terminal.js';

beforeAll(ensureBuilt, 180_000);

const hasPython = spawnSync('python3', ['--version']).status === 0;
const write = (path: string, content = 'hello'): string => `/call coder::create-file ${JSON.stringify({ files: [{ path, content }] })}`;
const asking = (dataDir: string, script: string, ...more: string[]): string[] => [
  ...['send', script, '--provider', 'demo', '--allow', 'coder::*', '--approve', 'ask', '--data-dir', dataDir],
  ...more,
];
const NEEDED = /approval needed:[\s\S]*approve (\S+) (\S+)/;

interface Row {
  session_id: string;
  function_call_id: string;
  function_id: string;
}
const waiting = async (dataDir: string): Promise<Row[]> => {
  const { stdout } = await here(['approvals', '--json', '--data-dir', dataDir]);
  return stdout
    .trim()
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Row]));
};
// biome-ignore lint/suspicious/noControlCharactersInRegex: our own colours
const plain = (shown: string): string => shown.replace(/\u001b\[[0-9;]*m/g, '');
const contentOf = (path: string): string | null => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
};

describe.runIf(hasPython)('in a terminal', () => {
  it('asks, and y lets the call go on; what was typed before the question, or is pasted, is no answer', async () => {
    const [work, dataDir] = [folder(), folder()];
    const run = startInTerminal(asking(dataDir, write('a.txt')), { cwd: work });
    run.press('y\ny\ny');
    await run.until('stdout', /> $/);
    run.press('y');
    expect(plain(run.stdout)).toMatch(/^┃ approve coder::create-file \?$/m);
    expect(run.stdout).toContain('"path": "a.txt"');
    await new Promise((done) => setTimeout(done, 600));
    run.press('yes please');
    expect(await waiting(dataDir)).toHaveLength(1);
    expect(contentOf(join(work, 'a.txt'))).toBeNull();
    await run.pressUntil('y', /completed/);
    expect((await run.result).code).toBe(0);
    expect(contentOf(join(work, 'a.txt'))).toBe('hello');
  });

  it('a is for all later calls of the function, r gives the model the reason', async () => {
    const [work, dataDir] = [folder(), folder()];
    const script = [write('a.txt'), write('b.txt'), '/call coder::read-file {"path":"a.txt"}'].join('\n');
    const run = startInTerminal(asking(dataDir, script, '--session', 's_a'), { cwd: work });
    await run.until('stdout', /> $/);
    await run.pressUntil('a', /approve coder::read-file/);
    await run.pressUntil('r', /why not/);
    run.press('too\u007f\u007f\u007fnot now\r');
    await run.until('stdout', /completed/);
    expect((await run.result).code).toBe(0);
    expect([contentOf(join(work, 'a.txt')), contentOf(join(work, 'b.txt'))]).toEqual(['hello', 'hello']);
    const shown = await here(['show', 's_a', '--data-dir', dataDir]);
    expect(shown.stdout).toContain('a person denied it, saying: not now');
  });

  it('C52 nothing in a call can look like the question or move the cursor; an answer from elsewhere takes the question away', async () => {
    const [work, dataDir] = [folder(), folder()];
    const evil = '\u001b[2J\u001b[H\r\n\ny yes · a always > \n\u202eabc\u200b\u009b2J\u0007';
    const script = write(`${'long/'.repeat(40)}x.txt`, evil);
    const run = startInTerminal(asking(dataDir, script, '--session', 's_a'), { cwd: work });
    await run.until('stdout', /> $/);
    const question = run.stdout.slice(run.stdout.indexOf('┃'));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
    expect(question).not.toMatch(/\u001b\[2J|\u001b\[H|\u202e|\u200b|\u009b|\u0007/);
    const lines = plain(question).trimEnd().split('\r\n');
    expect(lines.slice(1, -1).filter((line) => !line.startsWith('┃'))).toEqual([]);
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    const [call] = await waiting(dataDir);
    expect((await here(['approve', 's_a', call?.function_call_id ?? '', '--data-dir', dataDir])).code).toBe(0);
    await run.until('stdout', /settled elsewhere[\s\S]*completed/);
    expect((await run.result).code).toBe(0);
  });

  it('Ctrl-C at the question stops the turn', async () => {
    const [work, dataDir] = [folder(), folder()];
    const run = startInTerminal(asking(dataDir, write('a.txt'), '--session', 's_a'), { cwd: work });
    await run.until('stdout', /> $/);
    run.press('\u0003');
    expect((await run.result).code).toBe(130);
    expect(contentOf(join(work, 'a.txt'))).toBeNull();
    expect((await statusOf(dataDir, 's_a')).turn?.status).toBe('cancelled');
    expect(await waiting(dataDir)).toEqual([]);
  });
});

describe('without a terminal', () => {
  it('says how to answer, waits, and goes on after an approval from another process', async () => {
    const [work, dataDir] = [folder(), folder()];
    writeFileSync(join(work, 'README.md'), '# hello\n');
    const script = `/call coder::read-file {"path":"README.md"}\n${write('a.txt')}`;
    const run = start([...asking(dataDir, script), '--approve', 'auto'], { cwd: work });
    await run.until('stderr', NEEDED);
    expect(run.stderr).toMatch(/● coder::read-file.*\n {2}└ ✓/); // which only reads
    const [, session = '', call = ''] = NEEDED.exec(run.stderr) ?? [];
    const listed = await here(['approvals', '--data-dir', dataDir], { columns: 200 });
    expect(listed.stdout).toMatch(new RegExp(`${session} +${call} +coder::create-file .*path`));
    const unknown = await here(['approve', session, 'nope', '--data-dir', dataDir]);
    expect({ code: unknown.code, hint: unknown.stderr.includes(`There waits ${call}`) }).toEqual({ code: 2, hint: true });
    const approved = await here(['approve', session, call, '--data-dir', dataDir]);
    expect(approved).toMatchObject({ code: 0, stderr: '' });
    expect(approved.stdout).toMatch(/^allowed · coder::create-file/);
    expect((await run.result).code).toBe(0);
    expect(contentOf(join(work, 'a.txt'))).toBe('hello');
    expect((await here(['deny', session, call, '--data-dir', dataDir])).code).toBe(2);
  });

  it('shows a denial from another process, and prints events as JSON', async () => {
    const [work, dataDir] = [folder(), folder()];
    const run = start(asking(dataDir, write('a.txt'), '--json', '--session', 's_a'), { cwd: work });
    await run.until('stdout', /"approval_pending"/);
    const [call] = await waiting(dataDir);
    const denied = await here(['deny', 's_a', call?.function_call_id ?? '', '--reason', 'no', '--json', '--data-dir', dataDir]);
    expect(JSON.parse(denied.stdout)).toMatchObject({ session_id: 's_a', decision: 'deny', resolved: true });
    const { code, stdout, stderr } = await run.result;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const kinds = (eventsOf(stdout) as { type: string; outcome?: string; reason?: string }[]).filter(({ type }) =>
      type.startsWith('approval_'),
    );
    expect(kinds).toMatchObject([{ type: 'approval_pending' }, { type: 'approval_settled', outcome: 'denied', reason: 'no' }]);
    expect(contentOf(join(work, 'a.txt'))).toBeNull();
  });

  it('C10 a call that waits survives the kill of its process, and is approved without it', async () => {
    const [work, dataDir] = [folder(), folder()];
    const run = start(asking(dataDir, write('a.txt'), '--session', 's_a'), { cwd: work });
    await run.until('stderr', NEEDED);
    run.signal('SIGKILL');
    await run.result;
    const [call] = await waiting(dataDir);
    const approved = await here(['approve', 's_a', call?.function_call_id ?? '', '--data-dir', dataDir]);
    expect(approved.stderr).toContain('serve` goes on with it');
    const worker = start(['serve', '--data-dir', dataDir], { cwd: work });
    const watched = await here(['status', 's_a', '--watch', '--json', '--data-dir', dataDir]);
    worker.signal('SIGTERM');
    expect((await worker.result).code).toBe(0);
    expect({ code: watched.code, written: contentOf(join(work, 'a.txt')) }).toEqual({ code: 0, written: 'hello' });
  });
});
