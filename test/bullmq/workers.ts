import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EmbeddedRuntime } from '#libs/local';
import type { RedisServer } from '../support/redis-server.js';
import { agentCall, ScriptedModel } from '../support/scripted-model.js';
import { asks, says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';

const PATIENCE_MS = 40_000;

/** A model that makes one call in each turn and then answers. */
export function caller(): ScriptedModel {
  const model = new ScriptedModel();
  model.fallback = ({ messages }) => {
    const answered = messages.at(-1)?.role === 'function_result';
    return answered ? says('done') : asks(agentCall(`c${messages.length}`, 'tool::count', {}));
  };
  return model;
}

/** Worker runtimes that share one data folder and one Redis. */
export class Workers {
  readonly dataDir = mkdtempSync(join(tmpdir(), 'harness-shared-'));
  readonly rigs: TurnRig[] = [];
  /** How often the tool ran, by session. */
  readonly calls = new Map<string, number>();

  private constructor(private readonly redis: RedisServer) {}

  /** Opens `count` of them; `prepare` gets each before it runs anything. */
  static async open(count: number, redis: RedisServer, options: WorkerOptions = {}): Promise<Workers> {
    const workers = new Workers(redis);
    for (let n = 0; n < count; n += 1) await workers.add(options);
    return workers;
  }

  get first(): TurnRig {
    const [rig] = this.rigs;
    if (rig === undefined) throw new Error('there is no worker');
    return rig;
  }

  async add({ model = caller, prepare = () => undefined, leaseMs, config }: WorkerOptions = {}): Promise<TurnRig> {
    const rig = await TurnRig.open({
      dataDir: this.dataDir,
      role: 'worker',
      redisUrl: this.redis.url,
      model: model(),
      patienceMs: PATIENCE_MS,
      ...(leaseMs === undefined ? {} : { leaseMs }),
      ...(config === undefined ? {} : { config }),
      prepare: (runtime) => {
        runtime.bus.registerFunction({ id: 'tool::count' }, (_, { metadata }) => {
          const { session_id } = (metadata as { agent: { session_id: string } }).agent;
          this.calls.set(session_id, (this.calls.get(session_id) ?? 0) + 1);
          return { ok: true };
        });
        prepare(runtime, this.rigs.length);
      },
    });
    this.rigs.push(rig);
    return rig;
  }

  async allCompleted(sent: readonly { session_id: string }[], rig = this.first): Promise<void> {
    for (const { session_id } of sent) await rig.until(session_id, 'completed');
  }

  async close(): Promise<void> {
    for (const rig of this.rigs.splice(0)) await rig.close(true);
    rmSync(this.dataDir, { recursive: true, force: true });
  }
}

interface WorkerOptions {
  model?: () => ScriptedModel;
  leaseMs?: number;
  /** The fields of the `harness` entry, as YAML. */
  config?: string;
  prepare?: (runtime: EmbeddedRuntime, nth: number) => void;
}
