import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { bash, cli, ensureBuilt, eventsOf, folder, here, ROOT, statusOf } from './harness-cli.js';

beforeAll(ensureBuilt, 180_000);

const SUMMARY = /^(completed|failed|cancelled) · (\d+) steps? · (\d+) calls? · .* · session (\S+)$/;
const summaryOf = (stderr: string): RegExpExecArray => {
  const found = SUMMARY.exec(stderr.trimEnd().split('\n').at(-1) ?? '');
  if (found === null) throw new Error(`no summary at the end of:\n${stderr}`);
  return found;
};
describe('a turn with the demo provider', () => {
  it('reads a file through a real call and completes, and everything is on disk', async () => {
    const [work, dataDir] = [folder(), folder()];
    writeFileSync(join(work, 'README.md'), '# Sundial\n\nA clock that needs no power.\n');
    const result = await cli(
      ['send', '--data-dir', dataDir, '--allow', 'coder::*', 'engine::functions::*', 'read README.md and tell me what this project is'],
      { cwd: work },
    );
    expect(result.code).toBe(0);
    expect(result.stdout).toMatch(/Sundial[\s\S]*A clock that needs no power/);
    const [, status, , calls, session = ''] = summaryOf(result.stderr);
    expect({ status, enough: Number(calls) >= 2 }).toEqual({ status: 'completed', enough: true });
    expect(result.stderr).toMatch(/● coder::read-file\(path: "README.md"\).*\n {2}└ ✓/);
    expect(result.stderr).toContain('no API key is set');

    const [shown, listed, status1] = await Promise.all([
      here(['show', session, '--data-dir', dataDir]),
      here(['sessions', '--json', '--data-dir', dataDir]),
      statusOf(dataDir, session),
    ]);
    expect(shown.stdout).toMatch(/● coder::read-file[\s\S]*└ ✓ coder::read-file[\s\S]*A clock that needs no power/);
    expect(JSON.parse(listed.stdout)).toMatchObject({ session_id: session, status: 'done' });
    expect(status1).toMatchObject({ turn: { status: 'completed', pending_function_calls: [] }, owner: 'none' });
  });

  it('calls nothing without a policy, and completes', async () => {
    const result = await here(['send', '/call coder::info {}', '--json', '--data-dir', folder()]);
    expect(result.code).toBe(0);
    expect(eventsOf(result.stdout).filter((event) => event.type === 'call_finished' && event.outcome !== 'denied')).toEqual([]);
    expect(eventsOf(result.stdout).at(-1)).toMatchObject({ type: 'turn_finished', status: 'completed' });
  });

  it('allows what --allow says, save what --deny says', async () => {
    const script =
      '/call coder::read-file {"path":"package.json"}\n/call coder::update-file {"files":[{"path":"package.json","ops":[{"op":"remove","from_line":1,"to_line":1}]}]}\n/call web::fetch {"url":"http://127.0.0.1/"}';
    const before = readFileSync(join(ROOT, 'package.json'), 'utf8');
    const result = await here(['send', '-', '--allow', 'coder::*', '--deny', 'coder::update*', '--json', '--data-dir', folder()], {
      stdin: script,
    });
    const outcomes = eventsOf(result.stdout).flatMap((event) =>
      event.type === 'call_finished' ? [`${event.function_id} ${event.outcome}`] : [],
    );
    expect({ code: result.code, outcomes }).toEqual({
      code: 0,
      outcomes: ['coder::read-file ok', 'coder::update-file denied', 'web::fetch denied'],
    });
    expect(readFileSync(join(ROOT, 'package.json'), 'utf8')).toBe(before);
  });

  it('exits with 1 and says why when the turn fails', async () => {
    const result = await here(['send', '/error permanent the model is out', '--data-dir', folder()]);
    expect(result.code).toBe(1);
    expect(summaryOf(result.stderr)[1]).toBe('failed');
    expect(result.stderr).toContain('the model is out');
  });

  it('goes on with a session', async () => {
    const dataDir = folder();
    for (const text of ['/say first', '/say second'])
      expect((await here(['send', text, '--session', 's_mine', '--title', 'Mine', '--data-dir', dataDir])).code).toBe(0);
    const { stdout } = await here(['show', 's_mine', '--json', '--data-dir', dataDir]);
    const items = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { message: { role: string; content: { text?: string }[] } });
    expect(items.map(({ message }) => message.role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    expect(items.flatMap(({ message }) => (message.role === 'user' ? [message.content[0]?.text] : []))).toEqual([
      '/say first',
      '/say second',
    ]);
  });
});

describe('output of send --json', () => {
  const LONG = `/say ${'word '.repeat(5000)}`;

  it('is complete and parseable in a file, with nothing beside it', async () => {
    const [work, dataDir] = [folder(), folder()];
    const result = await bash('$CLI send - --json --data-dir "$D" < in > out 2> err; echo $?', {
      cwd: work,
      env: { D: dataDir, IN: writeIn(work, LONG) },
    });
    const events = eventsOf(readFileSync(join(work, 'out'), 'utf8'));
    expect(result.stdout.trim()).toBe('0');
    expect(readFileSync(join(work, 'err'), 'utf8')).toBe('');
    expect(events[0]?.type).toBe('session');
    expect(events.at(-1)).toMatchObject({ type: 'turn_finished', status: 'completed' });
    expect(events.map((event) => (event.type === 'text_delta' ? event.delta : '')).join('')).toContain('word '.repeat(4999));
  });

  it('reaches a slow reader whole', async () => {
    const [work, dataDir] = [folder(), folder()];
    const reader =
      'let s="";process.stdin.on("data",(c)=>{s+=c;process.stdin.pause();setTimeout(()=>process.stdin.resume(),15)}).on("end",()=>process.stdout.write(s))';
    const result = await bash(`$CLI send - --json --data-dir "$D" < in | "$NODE" -e '${reader}'; echo "\${PIPESTATUS[0]}" >&2`, {
      cwd: work,
      env: { D: dataDir, NODE: process.execPath, IN: writeIn(work, LONG) },
    });
    expect(result.stderr.trim()).toBe('0');
    expect(eventsOf(result.stdout).at(-1)).toMatchObject({ type: 'turn_finished' });
    expect(
      eventsOf(result.stdout)
        .map((event) => (event.type === 'text_delta' ? event.delta : ''))
        .join(''),
    ).toContain('word '.repeat(4999));
  });

  it('may lose its reader: the turn runs to its end, and nothing is said', async () => {
    const [work, dataDir] = [folder(), folder()];
    const head = await bash('$CLI send - --session s_head --json --data-dir "$D" < in | head -1; echo $PIPESTATUS >&2', {
      cwd: work,
      env: { D: dataDir, IN: writeIn(work, LONG) },
    });
    expect(head.stderr.trim()).toBe('0');
    expect(eventsOf(head.stdout)).toMatchObject([{ type: 'session', session_id: 's_head' }]);
    const closed = await bash('$CLI send - --session s_closed --json --data-dir "$D" < in >&-; echo $? >&2', {
      cwd: work,
      env: { D: dataDir },
    });
    expect(closed.stderr.trim()).toBe('0');
    for (const session of ['s_head', 's_closed']) expect((await statusOf(dataDir, session)).turn).toMatchObject({ status: 'completed' });
  });

  it('of a full disk is told', async () => {
    const result = await bash('$CLI send "/say hello" --data-dir "$D" > /dev/full; echo $?', { env: { D: folder() } });
    expect(result.stdout.trim()).toBe('3');
    expect(result.stderr).toMatch(/error: standard output cannot be written: ENOSPC/);
    expect(result.stderr).not.toMatch(/\n\s+at /);
  });
});

function writeIn(work: string, text: string): string {
  writeFileSync(join(work, 'in'), text);
  return 'in';
}
