import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Chance } from '../../fuzz/chance.js';
import { ATTACKS } from './attacks.js';
import type { Target } from './peer.js';

/** What a campaign came to. Sizes in MB, times in ms. */
export interface GatewayReport {
  attacks: number;
  faults: string[];
  /** Calls of the client that was not to be disturbed, and the slowest of them. */
  steady_calls: number;
  slowest_ms: number;
  memory_before_mb: number;
  memory_peak_mb: number;
  memory_after_mb: number;
}

/** A worker in a process of its own, every attack on its gateway, and one client that must not notice. */
export async function attackGateway(
  seed: number,
  rounds: number,
  size: number,
  told: (line: string) => void = () => undefined,
): Promise<GatewayReport> {
  const dataDir = mkdtempSync(join(tmpdir(), 'harness-gateway-fuzz-'));
  const { child, url } = await serve(dataDir);
  const { hostname: host, port } = new URL(url);
  const steady = new Steady(url);
  const faults: string[] = [];
  const memory = (): number => memoryOf(child);
  try {
    await steady.heard();
    const before = memory();
    let peak = before;
    let attacks = 0;
    for (let round = 0; round < rounds; round += 1) {
      const chance = new Chance(seed + round);
      for (const [name, attack] of Object.entries(ATTACKS)) {
        const fault = await attack({ host, port: Number(port) } satisfies Target, chance, size).then(
          () => null,
          (error: unknown) => `${name} (seed ${chance.seed}): ${error instanceof Error ? error.message : String(error)}`,
        );
        if (fault !== null) faults.push(fault);
        if (child.exitCode !== null || child.signalCode !== null) throw new Error(`the worker ended during: ${name}`);
        peak = Math.max(peak, memory());
        attacks += 1;
        await steady.heard();
        told(`${name}: ${memory()} MB, slowest call beside it ${steady.slowestSince()} ms`);
      }
    }
    await steady.heard();
    const { calls, slowest, failures } = steady;
    faults.push(...failures);
    return {
      attacks,
      faults,
      steady_calls: calls,
      slowest_ms: slowest,
      memory_before_mb: before,
      memory_peak_mb: peak,
      memory_after_mb: memory(),
    };
  } finally {
    steady.close();
    child.kill('SIGKILL');
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function serve(dataDir: string): Promise<{ child: ChildProcess; url: string }> {
  const cli = join(process.cwd(), 'dist/apps/harness-cli/src/main.js');
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], HARNESS_GATEWAY_PORT: '0' };
  const child = spawn(process.execPath, [cli, 'serve', '--data-dir', dataDir], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const url = await new Promise<string>((resolve, reject) => {
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      const found = /gateway (ws:\/\/[^\s,]+)/.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.on('exit', () => reject(new Error(`the worker did not start: ${said}`)));
  });
  return { child, url };
}

const memoryOf = ({ pid }: ChildProcess): number =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid ?? 0}/status`, 'utf8'))?.[1] ?? 0) / 1024);

interface Told {
  event: string;
  data: { calls: number; slowest_ms: number; failures: string[] };
}

/** A client in a process of its own that calls a function through the gateway, again and again, and must not be disturbed. */
class Steady {
  calls = 0;
  slowest = 0;
  readonly failures: string[] = [];
  private recent = 0;
  private readonly child: ChildProcess;
  private told: () => void = () => undefined;

  constructor(url: string) {
    const program = join(process.cwd(), 'test/gateway/program.mjs');
    this.child = spawn(process.execPath, [program, url, 'steady'], { stdio: ['ignore', 'pipe', 'ignore'] });
    if (this.child.stdout === null) throw new Error('the steady client has no output');
    createInterface({ input: this.child.stdout }).on('line', (line) => {
      const { event, data } = JSON.parse(line) as Told;
      if (event !== 'steady') return;
      this.calls = data.calls;
      this.recent = Math.max(this.recent, data.slowest_ms);
      this.slowest = Math.max(this.slowest, data.slowest_ms);
      this.failures.push(...data.failures.map((failure) => `the steady client: ${failure}`));
      this.told();
    });
  }

  /** Resolves when it has told how it goes, twice: so at least once from after this was asked. */
  async heard(): Promise<void> {
    for (let times = 0; times < 2; times += 1) {
      await new Promise<void>((resolve) => {
        this.told = resolve;
      });
    }
  }

  /** The slowest call since the last time that was asked. */
  slowestSince(): number {
    const slowest = this.recent;
    this.recent = 0;
    return slowest;
  }

  close(): void {
    this.child.kill('SIGKILL');
  }
}
