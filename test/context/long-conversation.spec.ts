import { afterEach, expect, it } from 'vitest';
import { type ContentBlock, callsOf, type ProviderStreamRequest } from '#libs/contracts';
import { compactionPrompt } from '#libs/prompts';
import { requestFaults } from '../support/invariants.js';
import { agentCall, ScriptedModel, text } from '../support/scripted-model.js';
import { TurnRig } from '../support/turn-rig.js';
import { vendorFaults } from './vendor-bodies.js';

const TURNS = 2_000;
const WINDOW = 32_768;
const OUTPUT = 4_096;
/** What the window leaves for a request: without the answer, and without the tenth that stays free. */
const USABLE = WINDOW - OUTPUT - Math.floor(WINDOW / 10);

let rig: TurnRig;
afterEach(() => rig.close());

/** An estimate of our own, of what is really sent. */
function tokensOf({ system_prompt, messages, tools }: ProviderStreamRequest): number {
  const said = messages.reduce((sum, { content }) => sum + content.reduce((all, block) => all + sizeOf(block), 0), 0);
  return Math.floor(((system_prompt ?? '').length + JSON.stringify(tools ?? []).length + said) / 4);
}
const sizeOf = (block: ContentBlock): number => (block.type === 'text' ? block.text.length : JSON.stringify(block).length);

/** Holds each request against the one before. */
class Witness {
  readonly faults: string[] = [];
  summaries = 0;
  requests = 0;
  largest = 0;
  /** A summary was made since the last request of the conversation. */
  private summed = false;
  private before: ProviderStreamRequest | undefined;

  see(request: ProviderStreamRequest): void {
    const isSummary = request.system_prompt === compactionPrompt();
    const tokens = tokensOf(request);
    this.largest = Math.max(this.largest, tokens);
    if (tokens > USABLE) this.fault(`has ${tokens} tokens of ${USABLE}`);
    for (const fault of requestFaults(request.messages)) this.fault(fault);
    if (isSummary && request.tools != null) this.fault('is for a summary and has functions');
    if (isSummary || this.summed || this.requests % 50 === 0) for (const fault of vendorFaults(request)) this.fault(fault);
    if (isSummary) this.summary();
    else this.next(request);
  }

  private summary(): void {
    if (this.summed) this.fault('is a second summary for one overflow');
    this.summed = true;
    this.summaries += 1;
  }

  private next(request: ProviderStreamRequest): void {
    const { before } = this;
    this.requests += 1;
    this.before = request;
    const rewritten = this.summed;
    this.summed = false;
    if (before === undefined) return;
    if (JSON.stringify(before.tools) !== JSON.stringify(request.tools)) this.fault('has other functions than the one before');
    const same =
      before.system_prompt === request.system_prompt &&
      before.messages.every(
        (message, at) => message === request.messages[at] || JSON.stringify(message) === JSON.stringify(request.messages[at]),
      );
    if (same === rewritten) this.fault(rewritten ? 'is the same as before its summary' : 'does not begin with the one before');
  }

  private fault(what: string): void {
    if (this.faults.length < 20) this.faults.push(`request ${this.requests}: ${what}`);
  }
}

it('goes on for thousands of turns in a small window: one summary per overflow, never a request that does not fit or is refused', async () => {
  const model = new ScriptedModel();
  const witness = new Witness();
  let calls = 0;
  model.fallback = (request) => {
    witness.see(request);
    model.requests.length = 0;
    if (request.system_prompt === compactionPrompt())
      return { content: [text(`## Task\nTalk.\n\n## Facts\nSummary ${witness.summaries}.`)] };
    const last = request.messages.at(-1);
    const asksForCall = last?.role === 'user' && last.content.some((block) => block.type === 'text' && block.text.startsWith('look'));
    if (!asksForCall) return { content: [text(`Answer to that. ${'It is so because of this. '.repeat(20)}`)] };
    calls += 1;
    return { content: [text('I look it up.'), agentCall(`call_${calls % 5}`, 'probe::look', { n: calls })] };
  };
  rig = await TurnRig.open({ model, config: 'durability: process\n', limits: { context_window: WINDOW, max_output_tokens: OUTPUT } });
  rig.function('probe::look', () => `found: ${'lorem ipsum '.repeat(250)}`);
  const cpu: number[] = [];
  for (let turn = 0; turn < TURNS; turn += 1) {
    const start = process.cpuUsage();
    const message = `${turn % 3 === 0 ? 'look' : 'say'} ${turn} ${'and tell me more of it '.repeat(12)}`;
    expect(await rig.turn(message, { session_id: 's_long' })).toMatchObject({ status: 'completed', reason: null });
    const { user, system } = process.cpuUsage(start);
    cpu.push((user + system) / 1_000);
    rig.events.length = 0;
  }
  expect(witness.faults).toEqual([]);
  const session = rig.disk('s_long');
  const compactions = session.entries.filter(({ custom }) => custom?.type === 'compaction');
  expect(compactions).toHaveLength(witness.summaries);
  expect(witness.summaries).toBeGreaterThan(20);
  expect(witness.summaries).toBeLessThan(TURNS / 10);
  expect(witness.largest).toBeGreaterThan(USABLE * 0.8);
  expect(session.message_count).toBe(TURNS * 2 + calls * 2);
  expect(session.entries.flatMap(({ message }) => callsOf(message?.role === 'assistant' ? message.content : []))).toHaveLength(calls);
  const median = (part: number[]): number => [...part].sort((a, b) => a - b)[part.length >> 1] ?? 0;
  const early = median(cpu.slice(10, 210));
  const late = median(cpu.slice(-200));
  expect(late / early).toBeLessThan(1.5); // processor time, not time on the clock: about 1 in fact
  expect(rig.reports).toEqual([]);
}, 300_000);
