import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import { TurnRig } from '../support/turn-rig.js';
import { anthropicStream, chatStream, type Said } from '../support/vendor-scripts.js';
import { type SseEvent, type VendorAnswer, VendorServer } from '../support/vendor-server.js';

export const KEY = 'sk-test-A1b2C3d4E5f6G7h8I9j0K1l2M3n4';

/** A model of a vendor, and how that vendor answers. */
export interface VendorModel {
  name: string;
  provider: string;
  model: string;
  /** The stream of an answer; `cut`: without its end. */
  events(said: readonly Said[], cut?: boolean): SseEvent[];
}

export const MODELS: readonly VendorModel[] = [
  { name: 'anthropic', provider: 'anthropic', model: 'claude-sonnet-4-5', events: (said, cut = false) => anthropicStream(said, { cut }) },
  { name: 'openai', provider: 'openai', model: 'gpt-4o', events: (said, cut = false) => chatStream(said, cut ? { finish: null } : {}) },
];

/** A runtime whose providers talk to a local stand-in for the vendors, which refuses what a vendor refuses. */
export class VendorRig {
  private constructor(
    readonly rig: TurnRig,
    readonly server: VendorServer,
  ) {}

  static async open(config = ''): Promise<VendorRig> {
    const server = await VendorServer.start();
    const dataDir = mkdtempSync(join(tmpdir(), 'harness-vendors-'));
    mkdirSync(join(dataDir, 'config'));
    writeFileSync(join(dataDir, 'config', 'llm-router.yaml'), 'settings: { retry_max: 2, retry_base_ms: 1, retry_cap_ms: 200 }\n');
    const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: server.url, OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${server.url}/v1` };
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    return new VendorRig(await TurnRig.open({ dataDir, config }), server);
  }

  /** Adds answers of a vendor. */
  answers(...answers: VendorAnswer[]): void {
    this.server.script(...answers);
  }

  /** What vendors would have refused, of all requests so far. */
  violations(): string[] {
    return this.server.requests.flatMap(({ violation }) => (violation === null ? [] : [violation]));
  }

  async close(): Promise<void> {
    vi.unstubAllEnvs();
    await this.rig.close();
    await this.server.close();
  }
}
