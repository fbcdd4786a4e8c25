import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FunctionPolicyInput, type JsonValue, type ProviderStreamRequest, textOf } from '#libs/contracts';
import type { TriggerRequest } from '#libs/iii';
import { readDisk } from '../support/disk.js';
import { requestFaults, sessionFaults } from '../support/invariants.js';
import { type Scripted, ScriptedModel, text } from '../support/scripted-model.js';
import { TurnRig } from '../support/turn-rig.js';
import { Chance } from './chance.js';
import { hostilePlay, policyOf, REAL_FUNCTIONS } from './hostile.js';

const HARNESS = 'default_max_turns: 4\nmax_depth: 1\nmax_children: 2\nstep_backoff_ms: 1\ndispatch_timeout_ms: 2000\n';
const ROUTER = 'settings:\n  idle_timeout_ms: 150\n  retry_max: 1\n  retry_base_ms: 1\n  retry_cap_ms: 2\n';
const GOOD_QUESTION = 'are you well?';
/** Turns that are under way at once. */
const AT_ONCE = 8;

/** What a model must never reach, whatever it is allowed; kept apart from the table of the product. */
const NEVER = [
  'harness::send',
  'harness::turn',
  'harness::stop',
  'harness::function::*',
  'harness::sweep-pending',
  'harness::on-config-change',
  'session::create',
  'session::ensure',
  'session::fork',
  'session::set-*',
  'session::append*',
  'session::update-*',
  'session::delete*',
  'session::put-*',
  'router::chat',
  'router::complete',
  'router::abort',
  'router::provider::*',
  'router::models::reconcile',
  'provider::*',
  'configuration::*',
  'approval::*',
  'engine::workers::register',
  'engine::channels::create',
  'engine::register_trigger',
  'engine::unregister_trigger',
  'engine::queue::*',
];

/** A glob letter by letter: slow, and plain to see that it is right. */
function matches(glob: string, id: string): boolean {
  if (glob === '') return id === '';
  if (glob[0] === '*') return matches(glob.slice(1), id) || (id !== '' && matches(glob, id.slice(1)));
  return id !== '' && glob[0] === id[0] && matches(glob.slice(1), id.slice(1));
}

/** True for what no function id holds: spaces, control characters, halves of pairs. */
const isOdd = (character: string): boolean =>
  character.trim() === '' || character < ' ' || (character >= '\u007f' && character <= '\u009f') || !character.isWellFormed();

/** How long a turn may take, in ms: one answer may make 128 calls, each with its commit, on a machine that is busy. */
const PATIENCE_MS = 180_000;

/** Whether a policy lets a function pass, by the words of the contract. */
export function lets(policy: FunctionPolicyInput | null, id: string): boolean {
  if (policy === null || [...id].some(isOdd)) return false;
  if (NEVER.some((glob) => matches(glob, id))) return false;
  return (policy.allow ?? []).some((glob) => matches(glob, id)) && !(policy.deny ?? []).some((glob) => matches(glob, id));
}

interface Agent {
  session_id: string;
}
const agentOf = (request: TriggerRequest): Agent | null => (request.metadata as { agent?: Agent } | undefined)?.agent ?? null;

/** What a campaign came to. */
export interface CampaignReport {
  turns: number;
  /** Turns and children by how they ended. */
  ends: { [how: string]: number };
  /** Calls that reached a function. */
  calls: number;
  children: number;
  generations: number;
  /** What must not have happened, with the seed of the turn. */
  faults: string[];
}

/** Plays the model with random frames against random policies, and checks after each turn what must always hold. */
export class Campaign {
  private readonly policies = new Map<string, FunctionPolicyInput | null>();
  private readonly randoms = new Map<string, Chance>();
  private readonly ends: { [how: string]: number } = {};
  private readonly faults: string[] = [];
  private calls = 0;
  /** Calls that were held against a policy: at least those that reached a function. */
  private checked = 0;
  private generations = 0;
  private turns = 0;

  private constructor(
    private readonly seed: number,
    private readonly rig: TurnRig,
  ) {}

  /** Runs `turns` hostile turns, or those that begin before `deadline` (ms, as `Date.now()`). */
  static async run(seed: number, turns: number, deadline = Number.POSITIVE_INFINITY): Promise<CampaignReport> {
    const dataDir = mkdtempSync(join(tmpdir(), 'harness-fuzz-'));
    mkdirSync(join(dataDir, 'config'));
    writeFileSync(join(dataDir, 'config', 'llm-router.yaml'), ROUTER);
    let campaign: Campaign | undefined;
    const model = new ScriptedModel();
    model.fallback = (request) => campaign?.generation(request) ?? { content: [text('too early')] };
    const rig = await TurnRig.open({
      dataDir,
      config: HARNESS,
      role: 'worker', // so that its bus is the one that the loop calls with
      patienceMs: PATIENCE_MS,
      prepare: ({ bus }) => model.register(bus, 'hostile', 'none'),
    });
    try {
      campaign = new Campaign(seed, rig);
      campaign.listen();
      await campaign.play(turns, deadline);
      return campaign.report();
    } finally {
      await rig.close();
    }
  }

  /** Registers the functions, and takes note of every call that is made for a model. */
  private listen(): void {
    const { bus } = this.rig.runtime;
    for (const id of REAL_FUNCTIONS) {
      bus.registerFunction({ id }, () => {
        this.calls += 1;
        return { ok: id };
      });
    }
    const trigger = bus.trigger.bind(bus);
    bus.trigger = <T>(request: TriggerRequest): Promise<T> => {
      const agent = agentOf(request);
      if (agent !== null) {
        this.checked += 1;
        this.check(agent, request.function_id);
      }
      return trigger<T>(request);
    };
  }

  private check({ session_id }: Agent, functionId: string): void {
    const policy = this.policies.get(session_id) ?? this.childPolicy(session_id);
    if (!lets(policy, functionId))
      this.fault(session_id, `${JSON.stringify(functionId)} was called against the policy ${JSON.stringify(policy)}`);
  }

  /** A child's policy is its own, and at most that of its parent. */
  private childPolicy(session_id: string): FunctionPolicyInput | null {
    const session = this.rig.disk(session_id);
    const record = session.turn?.record;
    const own = record?.options.functions ?? null;
    const parent = record?.parent == null ? undefined : this.policies.get(record.parent.session_id);
    if (parent === undefined) this.fault(session_id, 'has a model that calls functions, and nobody started it');
    for (const id of [...REAL_FUNCTIONS, 'harness::spawn', 'session::list', 'state::set']) {
      if (lets(own, id) && !lets(parent ?? null, id)) this.fault(session_id, `lets ${id} pass, its parent does not`);
    }
    this.policies.set(session_id, own);
    return own;
  }

  private generation(request: ProviderStreamRequest): Scripted {
    this.generations += 1;
    const faults = requestFaults(request.messages);
    const users = request.messages.flatMap((message) => (message.role === 'user' ? [textOf(message.content)] : []));
    const tag = /^fuzz-\d+/.exec(users[0] ?? '')?.[0] ?? 'fuzz-0';
    for (const fault of faults) this.fault(tag, `got a request that no provider would take: ${fault}`);
    if (users.at(-1) === GOOD_QUESTION) return { content: [text('fine')] };
    const random = this.randomOf(tag);
    return async (_request, writer) => {
      const { frames, end } = hostilePlay(random, tag);
      for (const frame of frames) await writer.send(frame);
      if (end === 'throw') throw new Error(random.pick(['', 'broken', 'timeout: odd', '\ud800']));
      if (end === 'hang') await new Promise<void>((resolve) => writer.signal.addEventListener('abort', () => resolve()));
    };
  }

  private randomOf(tag: string): Chance {
    let random = this.randoms.get(tag);
    if (random === undefined) {
      random = new Chance(this.seed + Number(tag.slice('fuzz-'.length)));
      this.randoms.set(tag, random);
    }
    return random;
  }

  private async play(turns: number, deadline: number): Promise<void> {
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < turns && Date.now() < deadline) {
        const index = next;
        next += 1;
        await this.turn(`fuzz-${index}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }

  /** One hostile turn, then a good one in the same session. */
  private async turn(tag: string): Promise<void> {
    const random = this.randomOf(tag);
    const functions = policyOf(random);
    this.policies.set(tag, functions);
    const output = random.chance(0.2)
      ? { type: 'json' as const, schema: random.pick<JsonValue>([{ type: 'object', required: ['n'] }, { type: 'array' }, true]) }
      : { type: 'text' as const };
    const onHostile = { session_id: tag, model: 'hostile-1', provider: 'hostile' };
    try {
      const ended = await this.rig.turn(tag, { ...onHostile, options: { functions, output, max_turns: random.int(1, 4) } });
      this.count(ended.status, ended.reason);
      if (ended.reason === 'harness.internal') this.fault(tag, `failed for a fault of our own: ${ended.result_error}`);
      const after = await this.rig.turn(GOOD_QUESTION, { ...onHostile, options: {} });
      if (after.status !== 'completed' || after.result !== 'fine')
        this.fault(tag, `did not take the next message: ${JSON.stringify(after)}`);
    } catch (error) {
      this.fault(tag, error instanceof Error ? error.message.slice(0, 2_000) : String(error));
    }
    this.turns += 1;
    this.randoms.delete(tag);
  }

  private count(status: string, reason: string | null): void {
    const how = reason === null ? status : `${status} (${reason})`;
    this.ends[how] = (this.ends[how] ?? 0) + 1;
  }

  private report(): CampaignReport {
    const disk = readDisk(this.rig.dataDir);
    for (const session of disk.sessions) for (const fault of sessionFaults(session)) this.fault(session.session_id, fault);
    if (({} as { polluted?: unknown }).polluted !== undefined) this.faults.push('Object.prototype was polluted');
    if (this.checked < this.calls) this.faults.push(`${this.calls} calls reached a function, and only ${this.checked} were looked at`);
    for (const report of this.rig.reports) this.faults.push(`reported: ${report}`);
    const children = disk.sessions.filter(({ turn }) => turn?.record.parent != null).length;
    return {
      turns: this.turns,
      ends: this.ends,
      calls: this.calls,
      children,
      generations: this.generations,
      faults: [...new Set(this.faults)],
    };
  }

  private fault(where: string, what: string): void {
    this.faults.push(`seed ${this.seed}, ${where}: ${what}`);
  }
}
