import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { onTestFinished } from 'vitest';
import type { StatusReport } from '#libs/contracts';
import type { FeedEvent } from '#libs/turn';
import { openRuntime } from '../../apps/harness-cli/src/cli/open-runtime.js';
import { type Run, type RunOptions, run } from '../../apps/harness-cli/test/fake.js';

export const ROOT = resolve(import.meta.dirname, '../..');
export const CLI = join(ROOT, 'dist/apps/harness-cli/src/main.js');

/** Builds what is out of date; does nothing when the build is fresh. */
export function ensureBuilt(): void {
  if (process.env['HARNESS_TEST_BUILT'] === '1') return;
  const { status, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts/ensure.mjs'), 'build'], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`the build failed:\n${stderr}`);
}

/** A folder that is gone after the test. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'harness-cli-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

export interface Options {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  input?: string;
}
export interface Result {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** The environment of a CLI of a test: no key, no server, no colour. */
const environment = (more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  HOME: process.env['HOME'],
  ...more,
});

/** A CLI that runs. */
export class Running {
  stdout = '';
  stderr = '';
  readonly result: Promise<Result>;
  private readonly changed = new Set<() => void>();

  constructor(readonly child: ChildProcessWithoutNullStreams) {
    child.stdout.setEncoding('utf8').on('data', (text: string) => this.add('stdout', text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => this.add('stderr', text));
    this.result = new Promise((done) =>
      child.on('close', (code, signal) => done({ code, signal, stdout: this.stdout, stderr: this.stderr })),
    );
    onTestFinished(() => {
      child.kill('SIGKILL');
    });
  }

  /** Resolves when `pattern` has appeared; rejects when the process ends without it. */
  async until(stream: 'stdout' | 'stderr', pattern: RegExp): Promise<void> {
    let over = false;
    void this.result.then(() => {
      over = true;
      for (const check of this.changed) check();
    });
    while (!pattern.test(this[stream])) {
      if (over) throw new Error(`ended without ${String(pattern)}:\n${this.stdout}\n${this.stderr}`);
      await new Promise<void>((done) => {
        const check = (): void => {
          this.changed.delete(check);
          done();
        };
        this.changed.add(check);
      });
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  private add(stream: 'stdout' | 'stderr', text: string): void {
    this[stream] += text;
    for (const check of this.changed) check();
  }
}

/** Starts the built CLI as a process of its own. */
export function start(argv: readonly string[], { cwd = ROOT, env, input = '' }: Options = {}): Running {
  const child = spawn(process.execPath, [CLI, ...argv], { cwd, env: environment(env) });
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  return new Running(child);
}

/** Runs the built CLI to its end. */
export const cli = (argv: readonly string[], options?: Options): Promise<Result> => start(argv, options).result;

/** Runs a bash line in which `$CLI` is the built CLI; gives the exit codes of all parts of its last pipe too. */
export function bash(line: string, { cwd = ROOT, env }: Options = {}): Promise<Result> {
  const child = spawn('bash', ['-c', `${line}`], { cwd, env: environment({ ...env, CLI: `${process.execPath} ${CLI}` }) });
  child.stdin.end();
  return new Running(child).result;
}

/** Runs a command in this process over the real runtime: as another terminal would, without the start of a process. */
export const here = (argv: readonly string[], options: RunOptions = {}): Promise<Run> =>
  run(argv, { open: openRuntime, now: Date.now, ...options });

/** What `status --json` says of a session. */
export async function statusOf(dataDir: string, session: string): Promise<{ turn: StatusReport | null; owner: string }> {
  return JSON.parse((await here(['status', session, '--json', '--data-dir', dataDir])).stdout) as {
    turn: StatusReport | null;
    owner: string;
  };
}

/** The events of `send --json`. */
export const eventsOf = (stdout: string): (FeedEvent | { type: 'session'; session_id: string; turn_id: string })[] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as FeedEvent);

/** True while a process of this id is there. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
