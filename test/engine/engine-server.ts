import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { freePort } from '../support/free-port.js';

/** The iii engine that tests use; they are skipped without one. */
export const ENGINE_BIN = process.env['III_ENGINE_BIN'];

/** How long an engine may take to take connections, in ms. */
const START_MS = 20_000;

/** What the engine runs: its own state, cron and configuration, and a queue that takes topics only. */
const config = (port: number): string => `workers:
  - name: iii-worker-manager
    config: { port: ${port}, host: 127.0.0.1 }
  - name: iii-state
    config:
      adapter:
        name: kv
        config: { store_method: file_based, file_path: ./data/state, save_interval_ms: 100 }
  - name: iii-cron
    config:
      adapter: { name: kv }
  - name: configuration
    config:
      adapter:
        name: fs
        config: { directory: ./config }
      ttl_seconds: 0
`;

/** A real iii engine, in a folder of its own, which can be killed and started again. */
export class EngineServer {
  private child: ChildProcess | undefined;

  private constructor(
    private readonly port: number,
    readonly folder: string,
  ) {}

  /** Starts one on a free port, for whoever disposes of it. */
  static async open(): Promise<EngineServer> {
    const folder = mkdtempSync(join(tmpdir(), 'harness-engine-'));
    const port = await freePort();
    mkdirSync(join(folder, 'config'));
    writeFileSync(join(folder, 'config.yaml'), config(port));
    const server = new EngineServer(port, folder);
    await server.up();
    return server;
  }

  /** What the engine says of its version. */
  static version(): string {
    return spawnSync(ENGINE_BIN ?? '', ['--version'], { encoding: 'utf8' }).stdout.trim();
  }

  get url(): string {
    return `ws://127.0.0.1:${this.port}`;
  }

  /** What it has said, for a test that fails. */
  get log(): string {
    return readFileSync(join(this.folder, 'engine.log'), 'utf8');
  }

  /** Starts it and waits until it takes connections. */
  async up(): Promise<void> {
    if (ENGINE_BIN === undefined) throw new Error('III_ENGINE_BIN names no engine');
    const env = { PATH: process.env['PATH'], HOME: this.folder, III_TELEMETRY_ENABLED: 'false', OTEL_ENABLED: 'false' };
    const child = spawn(ENGINE_BIN, ['--no-update-check', '-c', 'config.yaml'], {
      cwd: this.folder,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (text: Buffer) => appendFileSync(join(this.folder, 'engine.log'), text));
    this.child = child;
    const until = Date.now() + START_MS;
    while (!(await takesConnections(this.url))) {
      if (child.exitCode !== null || Date.now() > until) throw new Error(`the engine does not start:\n${this.log}`);
      await delay(25);
    }
  }

  /** Ends it as a power cut does. */
  async kill(): Promise<void> {
    const { child } = this;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
  }

  /** Ends it and removes what it wrote. */
  async dispose(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function takesConnections(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url);
    socket.once('open', () => {
      socket.close();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
