import { describe, expect, it } from 'vitest';
import { folder, here } from './harness-cli.js';

const spawn = (task: string): string => `/call harness::spawn ${JSON.stringify({ task })}`;
const nested = spawn(`${spawn('/call coder::info {}')}\n/say middle`);
const send = (dataDir: string, ...more: string[]): string[] => [
  ...['send', nested, '--provider', 'demo', '--allow', 'coder::*', 'harness::spawn', '--session', 's_root', '--data-dir', dataDir],
  ...more,
];

interface Tree {
  session_id: string;
  status: string;
  turns: number;
  calls: number;
  children: Tree[];
}

describe('sub-agents', () => {
  it('are indented blocks in a pipe, each with its own calls and a summary', async () => {
    const { code, stderr } = await here(send(folder()));
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /^● harness::spawn\(task: .*\n {2}⤷ sub-agent (\S+)\n( {4}.*\n)* {4}⤷ sub-agent (\S+)\n( {6}.*\n)*? {6}● coder::info\n {8}└ ✓ coder::info .*\n {4}⤷ sub-agent \3 completed · 2 steps · 1 call · .*\n( {4}.*\n)* {2}⤷ sub-agent \1 completed · /m,
    );
    expect(stderr).toMatch(/completed · .* · session s_root\n$/);
  });

  it('are lines that change on a terminal, and collapse into their summary', async () => {
    const { code, stderr } = await here(send(folder()), { tty: true, env: { TERM: 'xterm', NO_COLOR: '1', DEMO_DELAY_MS: '0' } });
    expect(code).toBe(0);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: how lines are drawn anew
    const kept = stderr.replace(/\r\u001b\[\d+A\u001b\[J|\r\u001b\[K/g, '\r');
    expect(kept).toMatch(/ {4}⤷ sub-agent \S+ completed[\s\S]* {2}⤷ sub-agent \S+ completed/);
    expect(stderr).not.toContain('● coder::info'); // only in the line that changes
  });

  it('are told as JSON by their beginning and their end, and shown as a tree', async () => {
    const dataDir = folder();
    const { stdout } = await here(send(dataDir, '--json'));
    const told = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; depth?: number; session_id: string; status?: string })
      .filter(({ type }) => type.startsWith('child_'));
    expect(told.map(({ type, depth }) => `${type} ${depth}`)).toEqual([
      'child_started 1',
      'child_started 2',
      'child_finished 2',
      'child_finished 1',
    ]);

    const tree = JSON.parse((await here(['show', 's_root', '--tree', '--json', '--data-dir', dataDir])).stdout) as Tree;
    expect(tree).toMatchObject({ session_id: 's_root', status: 'completed', turns: 1, calls: 1 });
    expect(tree.children).toMatchObject([{ session_id: told[0]?.session_id, status: 'completed', calls: 1 }]);
    expect(tree.children[0]?.children).toMatchObject([{ session_id: told[1]?.session_id, status: 'completed', calls: 1, children: [] }]);

    const { stdout: drawn } = await here(['show', 's_root', '--tree', '--data-dir', dataDir]);
    expect(drawn).toMatch(
      /^s_root completed · 1 turn · 1 call · .*\n└─ s_\S+ completed · .*\n {3}└─ s_\S+ completed · 1 turn · 1 call · .*\n$/,
    );
  });
});
