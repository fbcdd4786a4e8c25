import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildTools } from '../support/build-tools.js';
import { readDisk } from '../support/disk.js';
import { sessionFaults } from '../support/invariants.js';

let tools = '';
beforeAll(async () => {
  tools = await buildTools();
}, 120_000);

/** Runs the program to its end; gives the signal that killed it and what it said on standard error. */
function life(args: readonly string[], failpoint = ''): Promise<{ signal: NodeJS.Signals | null; stderr: string }> {
  const child = spawn(process.execPath, [join(tools, 'test', 'context', 'summing.js'), ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HARNESS_FAILPOINT: failpoint },
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (_code, signal) => resolve({ signal, stderr }));
  });
}

describe('a process that dies while a conversation is summed up', () => {
  it.each([
    ['when the summary is there and not stored', 'compaction:after', 2],
    ['before the summary is on disk', 'compacted:before', 2],
    ['when the summary is stored, before the model is asked', 'compacted:after', 1],
  ])(
    '%s: there is one summary, and it is not made again once it is stored',
    async (_when, point, summaries) => {
      const dataDir = mkdtempSync(join(tmpdir(), 'harness-summing-'));
      const counts = join(dataDir, 'summaries.jsonl');
      expect(await life([dataDir, counts, 'talk'], point)).toEqual({ signal: 'SIGKILL', stderr: '' });
      expect(await life([dataDir, counts])).toEqual({ signal: null, stderr: '' });
      expect(existsSync(counts) ? readFileSync(counts, 'utf8').trim().split('\n') : []).toHaveLength(summaries);
      const [session] = readDisk(dataDir).sessions;
      if (session === undefined) throw new Error('no session is stored');
      expect(session.entries.filter(({ custom }) => custom?.type === 'compaction')).toHaveLength(1);
      expect(session.turn?.record).toMatchObject({ status: 'completed', result: 'Right.' });
      expect(sessionFaults(session)).toEqual([]);
      rmSync(dataDir, { recursive: true });
    },
    120_000,
  );
});
