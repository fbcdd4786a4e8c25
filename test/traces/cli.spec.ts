import { beforeAll, describe, expect, it } from 'vitest';
import type { TurnSpans } from '../../libs/local/src/traces/index.js';
import { cli, ensureBuilt, folder, here, start } from '../cli/harness-cli.js';

beforeAll(ensureBuilt, 180_000);

const LOOK = '/call state::get {"scope":"a","key":"b"}';
const at = (dataDir: string): string[] => ['--data-dir', dataDir];
const send = (dataDir: string, message: string): string[] => [
  ...['send', message, '--provider', 'demo', '--allow', 'state::*', '--session', 's', ...at(dataDir)],
];
const read = (stdout: string): TurnSpans => JSON.parse(stdout) as TurnSpans;

describe('harness-cli traces', () => {
  it('draws a turn as a waterfall after the process that ran it is gone, to fit the terminal', async () => {
    const dataDir = folder();
    expect(await cli(send(dataDir, LOOK))).toMatchObject({ code: 0 });
    const { code, stdout } = await here(['traces', 's', ...at(dataDir)], { tty: true, columns: 90, env: { NO_COLOR: '1' } });
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines[0]).toMatch(/^completed · .+ · turn t_\w+ · trace \w{32}$/);
    expect(lines.slice(2).map((line) => /^\s*\S+( \S+)?(?= {2,})/.exec(line)?.[0])).toEqual([
      'invoke_agent',
      '  step 0',
      '    assemble',
      '    chat demo',
      '      provider::demo::stream',
      '    execute_tool state::get',
      '  step 1',
      '    assemble',
      '    chat demo',
      '      provider::demo::stream',
    ]);
    expect(lines[2]).toMatch(/█{20,}.* \d+ m?s {2}\S+ → \S+ {2}\$0\.00$/);
    expect(Math.max(...lines.slice(2).map((line) => line.length))).toBeLessThanOrEqual(90);
  });

  it('gives the spans of a turn that is named as JSON; one that is unknown, or none at all, is said', async () => {
    const dataDir = folder();
    expect(await here(send(dataDir, LOOK))).toMatchObject({ code: 0 });
    const first = read((await here(['traces', 's', '--json', ...at(dataDir)])).stdout);
    expect(await here(send(dataDir, 'again'))).toMatchObject({ code: 0 });
    const latest = read((await here(['traces', 's', '--json', ...at(dataDir)])).stdout);
    expect(latest.turn_id).not.toBe(first.turn_id);
    expect(read((await here(['traces', 's', '--turn', first.turn_id, '--json', ...at(dataDir)])).stdout)).toEqual(first);
    expect(await here(['traces', 's', '--turn', 't_none', ...at(dataDir)])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/no trace of a turn t_none[\s\S]*trace_turns/) as string,
    });
    expect((await here(['traces', 'nobody', ...at(dataDir)])).stderr).toContain('there is no session nobody');
  });

  it('works through --url, and marks what has failed', async () => {
    const dataDir = folder();
    const worker = start(['serve', ...at(dataDir)], { env: { HARNESS_GATEWAY_PORT: '0', HARNESS_HTTP_PORT: 'off' } });
    await worker.until('stdout', /gateway ws:\S+,/);
    const url = /gateway (ws:\S+),/.exec(worker.stdout)?.[1] ?? '';
    expect(await here(send(dataDir, '/call no::such {}'))).toMatchObject({ code: 0 });
    const { stdout } = await here(['traces', 's', '--url', url], { env: { NO_COLOR: '1' } });
    expect(stdout).toMatch(/^invoke_agent ✗ descendant_failed/m);
    expect(stdout).toMatch(/^ {4}execute_tool no::such ✗ policy_denied/m);
  });
});
