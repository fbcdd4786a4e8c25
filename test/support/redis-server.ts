import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { freePort } from './free-port.js';

/** True where tests can start a Redis; CI has one. */
export const hasRedis = spawnSync('redis-server', ['--version']).status === 0;

/** A Redis of a test's own, which writes everything to disk and can be killed and started again. */
export class RedisServer {
  private child: ChildProcess | undefined;

  private constructor(
    private readonly port: number,
    private readonly folder: string,
    private readonly options: readonly string[],
  ) {}

  /** Starts one on a free port; it is gone after the test. */
  static async start(...options: string[]): Promise<RedisServer> {
    const server = await RedisServer.open(...options);
    onTestFinished(async () => await server.dispose());
    return server;
  }

  /** Starts one on a free port, for whoever disposes of it. */
  static async open(...options: string[]): Promise<RedisServer> {
    const server = new RedisServer(await freePort(), mkdtempSync(join(tmpdir(), 'harness-redis-')), options);
    await server.up();
    return server;
  }

  /** Ends it and removes what it wrote. */
  async dispose(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  async up(): Promise<void> {
    const fixed = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.folder, '--save', '', '--appendonly', 'yes'];
    const child = spawn('redis-server', [...fixed, '--appendfsync', 'always', ...this.options], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.child = child;
    let said = '';
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', () => reject(new Error(`redis-server ended:\n${said}`)));
      child.stdout.on('data', (text: Buffer) => {
        said += text.toString();
        if (/Ready to accept connections/.test(said)) resolve();
      });
    });
  }

  /** Ends it as a power cut does. */
  async kill(): Promise<void> {
    const { child } = this;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const closed = new Promise((resolve) => child.once('close', resolve));
    child.kill('SIGKILL');
    await closed;
  }
}
