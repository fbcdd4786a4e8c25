import { afterEach, describe, expect, it } from 'vitest';
import { type AgentMessage, callsOf, type JsonObject, type ProviderStreamRequest, textOf } from '#libs/contracts';
import { compactionPrompt } from '#libs/prompts';
import { agentCall, type Scripted, ScriptedModel, text } from '../support/scripted-model.js';
import { asks, fails, held, says } from '../support/scripts.js';
import { TurnRig, type TurnRigOptions } from '../support/turn-rig.js';

const rigs: TurnRig[] = [];
afterEach(async () => {
  for (const rig of rigs.splice(0).reverse()) {
    expect(rig.faults()).toEqual([]);
    await rig.close();
  }
});

const isSummary = (request: ProviderStreamRequest): boolean => request.system_prompt === compactionPrompt();
const NOTES = says('## Task\nThe notes.');

/** A runtime whose model has a small window: `summary` answers requests for a summary, the script all others. */
async function open(summary: Scripted, options: TurnRigOptions = {}): Promise<TurnRig> {
  const model = new ScriptedModel();
  model.fallback = () => says('Right.');
  model.apart = (request) => (isSummary(request) ? summary : undefined);
  const rig = await TurnRig.open({ model, limits: { context_window: 8_000, max_output_tokens: 1_000 }, ...options });
  rigs.push(rig);
  return rig;
}

const summariesOf = (rig: TurnRig): ProviderStreamRequest[] => rig.model.requests.filter(isSummary);
const sizeOf = ({ system_prompt, messages }: ProviderStreamRequest): number =>
  (system_prompt ?? '').length + messages.reduce((sum, message) => sum + JSON.stringify(message.content).length, 0);
const compactions = (rig: TurnRig, session: string): JsonObject[] =>
  rig.disk(session).entries.flatMap(({ custom }) => (custom?.type === 'compaction' ? [custom.data as JsonObject] : []));
const errorOf = (rig: TurnRig, session: string): JsonObject =>
  rig.disk(session).entries.find(({ custom }) => custom?.type === 'error')?.custom?.data as JsonObject;
const words = (tokens: number, tag = 'word'): string => `${tag} `.repeat(Math.ceil((tokens * 4) / (tag.length + 1)));

/** Sends messages until the conversation has been summed up; gives how many it took. */
async function fill(rig: TurnRig, session_id: string, most = 20): Promise<number> {
  for (let turn = 1; turn <= most; turn += 1) {
    await rig.turn(`message ${turn}: ${words(600)}`, { session_id });
    if (compactions(rig, session_id).length > 0) return turn;
  }
  throw new Error('the conversation was never summed up');
}

describe('a conversation that does not fit any more', () => {
  it('is summed up once, stored, and goes on from there; also after a restart', async () => {
    const rig = await open(NOTES);
    const turns = await fill(rig, 's_1');
    const [data] = compactions(rig, 's_1');
    expect(data).toMatchObject({ summary: '## Task\nThe notes.', usable_input_tokens: 6_200, effective_max_output_tokens: 1_000 });
    expect(data?.['assembled_token_count']).toBeLessThan(data?.['initial_token_count'] as number);
    expect(data?.['summarized_head_tokens']).toBe(data?.['tokens_before']);
    const last = rig.model.requests.at(-1) as ProviderStreamRequest;
    expect(last.system_prompt).toMatch(/The notes\.\n<\/notes>$/);
    expect(textOf(last.messages[0]?.content ?? [])).toMatch(/^message \d/);
    expect(textOf(last.messages[0]?.content ?? [])).not.toMatch(/^message 1:/);
    expect(rig.events.some((event) => event.type === 'notice' && event.text.includes('summed up'))).toBe(true);
    await rig.close(true);
    rigs.length = 0;
    const again = await open(NOTES, { dataDir: rig.dataDir });
    await again.turn('and then?', { session_id: 's_1' });
    expect(again.model.requests).toHaveLength(1);
    expect(again.model.requests[0]?.system_prompt).toBe(last.system_prompt);
    const sent = (request: ProviderStreamRequest | undefined): string[] =>
      (request?.messages ?? []).map((message) => JSON.stringify(message));
    expect(sent(again.model.requests[0]).slice(0, last.messages.length)).toEqual(sent(last));
    expect(turns).toBeGreaterThan(3);
  });

  it('counts what the summary has cost to its turn', async () => {
    const rig = await open({ content: [text('Notes.')], usage: { input: 1_000, output: 100 } });
    await fill(rig, 's_1');
    const totals = rig.disk('s_1').turn?.record.totals;
    expect(totals).toMatchObject({ input_tokens: 1_010, output_tokens: 105 });
    expect(totals?.cost_usd).toBeGreaterThan(0.001);
  });

  it('is summed up in the middle of a turn too, between exchanges, while a model repeats its ids of calls', async () => {
    const rig = await open(NOTES);
    rig.function('probe::look', (payload) => `seen ${JSON.stringify(payload)} ${words(300, 'thing')}`);
    for (let n = 0; n < 40; n += 1)
      rig.model.plays(asks(agentCall('call_1', 'probe::look', { n }), agentCall('call_2', 'probe::look', { n, more: true })));
    const ended = await rig.turn('look at it all', { session_id: 's_1', options: { functions: { allow: ['*'] }, max_turns: 60 } });
    expect(ended).toMatchObject({ status: 'completed', result: 'Right.', calls: 80 });
    expect(compactions(rig, 's_1').length).toBeGreaterThan(3);
    const results = rig.disk('s_1').entries.filter(({ message }) => message?.role === 'function_result');
    expect(results).toHaveLength(80);
    expect(JSON.stringify(results)).not.toContain('result_missing');
    expect(JSON.stringify(rig.model.requests)).not.toContain('There is no result of this call');
    for (const { messages } of rig.model.requests) expect(messages[0]?.role).toBe('user');
  });

  it('C31 is given to the summary as plain text, without calls and functions', async () => {
    const rig = await open(NOTES);
    rig.function('probe::look', () => words(500, 'thing'));
    rig.model.plays(asks(agentCall('c1', 'probe::look')));
    await rig.turn('look', { session_id: 's_1' });
    await fill(rig, 's_1');
    const [request] = summariesOf(rig);
    expect(request?.tools).toBeUndefined();
    expect(request?.messages.map(({ role, content }) => [role, content.map(({ type }) => type)])).toEqual([['user', ['text']]]);
    const said = textOf(request?.messages[0]?.content ?? []);
    expect(said).toContain('Person: look');
    expect(said).toContain('(calls agent_trigger with {"function":"probe::look"');
    expect(said).toContain('Result of probe::look: thing thing');
  });

  const useless: [string, Scripted][] = [
    ['is a call', asks(agentCall('c1', 'probe::look'))],
    ['is empty', says('')],
    ['fails', fails('no summaries today')],
  ];
  it.each(useless)(
    'C31 whose summary %s goes on without its oldest part; nothing is stored and it is not asked for at every step',
    async (_how, summary) => {
      const rig = await open(summary);
      for (let turn = 1; turn <= 12; turn += 1)
        expect(await rig.turn(`message ${turn}: ${words(600)}`, { session_id: 's_1' })).toMatchObject({
          status: 'completed',
          result: 'Right.',
        });
      expect(compactions(rig, 's_1')).toEqual([]);
      expect(summariesOf(rig).length).toBeGreaterThan(0);
      expect(summariesOf(rig).length).toBeLessThan(6);
      const last = rig.model.requests.at(-1) as ProviderStreamRequest;
      expect(textOf(last.messages[0]?.content ?? [])).toContain('left out');
      expect(textOf(last.messages.at(-1)?.content ?? [])).toMatch(/^message 12:/);
      expect(sizeOf(last)).toBeLessThan(6_200 * 4);
    },
  );
});

describe('a summary that takes its time', () => {
  it('is given up at once when the turn is stopped, and nothing of it is stored', async () => {
    const slow = held();
    const rig = await open(slow.script);
    let turn = '';
    const begun = slow.begun.then(() => true);
    for (let n = 1; n <= 20; n += 1) {
      turn = (await rig.send(`message ${n}: ${words(600)}`, { session_id: 's_1' })).turn_id;
      if (await Promise.race([begun, rig.end(turn).then(() => false)])) break;
    }
    await rig.stop('s_1');
    expect(await rig.end(turn)).toMatchObject({ status: 'cancelled' });
    await slow.closed;
    expect(compactions(rig, 's_1')).toEqual([]);
    rig.model.apart = (request) => (isSummary(request) ? NOTES : undefined);
    expect(await rig.turn('go on', { session_id: 's_1' })).toMatchObject({ status: 'completed', result: 'Right.' });
    expect(compactions(rig, 's_1')).toHaveLength(1);
  });
});

describe('C30 a conversation that no summary makes smaller', () => {
  it('for one message fills it ends at once with a context error, without spending anything', async () => {
    const rig = await open(NOTES);
    const ended = await rig.turn(words(7_200), { session_id: 's_1' });
    expect(ended).toMatchObject({ status: 'failed', reason: 'harness.context_overflow' });
    expect(ended.result_error).toContain('context/overflow');
    expect(rig.model.requests).toEqual([]);
    expect(errorOf(rig, 's_1')).toMatchObject({ code: 'harness.context_overflow', kind: 'context_overflow' });
    expect(await rig.turn('short', { session_id: 's_1' })).toMatchObject({ status: 'completed', result: 'Right.' });
  });

  it('because the summary repeats what it was given is shortened all the same, once per overflow', async () => {
    const model = new ScriptedModel();
    model.fallback = (request) => (isSummary(request) ? says(textOf(request.messages[0]?.content ?? [])) : says('Right.'));
    const rig = await open(NOTES, { model });
    for (let turn = 1; turn <= 24; turn += 1)
      expect(await rig.turn(`message ${turn}: ${words(400)}`, { session_id: 's_1' })).toMatchObject({ status: 'completed' });
    const stored = compactions(rig, 's_1');
    expect(stored.length).toBeGreaterThan(1);
    expect(summariesOf(rig)).toHaveLength(stored.length);
    for (const data of stored) expect(data['assembled_token_count']).toBeLessThan(data['initial_token_count'] as number);
    for (const request of rig.model.requests) expect(sizeOf(request)).toBeLessThan(6_600 * 4);
  });
});

describe('C06 what a request takes', () => {
  it('is counted by what is sent: details of results are not', async () => {
    const rig = await open(NOTES, { limits: { context_window: 200_000, max_output_tokens: 8_000 } });
    const large = 'x'.repeat(50_000);
    rig.function('probe::large', () => ({ content: [{ type: 'text', text: large }], details: { large } }));
    for (let n = 0; n < 10; n += 1) rig.model.plays(asks(agentCall(`c${n}`, 'probe::large')));
    expect(await rig.turn('go', { session_id: 's_1' })).toMatchObject({ status: 'completed', result: 'Right.', calls: 10 });
    expect(summariesOf(rig)).toEqual([]);
    expect(JSON.stringify(rig.model.requests.at(-1)?.messages.map(({ content }) => content)).length).toBeGreaterThan(500_000);
  });

  it('includes what hooks add: a request that they make too large is put together once more, with room for it', async () => {
    const rig = await open(NOTES);
    const added = words(1_500, 'rule');
    rig.on('harness::hook::pre-generate', 'gate::rules', ({ generate }: { generate: { system_prompt: string } }) => ({
      decision: 'continue',
      mutations: { system_prompt: `${generate.system_prompt}\n\n${added}` },
    }));
    await fill(rig, 's_1');
    for (const request of rig.model.requests) expect(sizeOf(request)).toBeLessThan(6_200 * 4);
    expect(rig.model.requests.at(-1)?.system_prompt).toContain('rule rule');
  });

  it('too much for the hooks alone is a context error', async () => {
    const rig = await open(NOTES);
    rig.on('harness::hook::pre-generate', 'gate::rules', () => ({
      decision: 'continue',
      mutations: { system_prompt: words(7_000, 'rule') },
    }));
    expect(await rig.turn('go', { session_id: 's_1' })).toMatchObject({ status: 'failed', reason: 'harness.context_overflow' });
    expect(rig.model.requests).toEqual([]);
  });

  const refusal = fails('prompt is too long', 'context_overflow');
  it('too much for the model, whatever was counted, is tried once more, smaller', async () => {
    const rig = await open(NOTES, { limits: { context_window: 200_000, max_output_tokens: 8_000 } });
    for (let turn = 1; turn <= 6; turn += 1) await rig.turn(`message ${turn}: ${words(900)}`, { session_id: 's_1' });
    const before = rig.model.requests.length;
    rig.model.plays(refusal);
    expect(await rig.turn('go on', { session_id: 's_1' })).toMatchObject({ status: 'completed', result: 'Right.' });
    const [refused, summary, smaller] = rig.model.requests.slice(before) as [
      ProviderStreamRequest,
      ProviderStreamRequest,
      ProviderStreamRequest,
    ];
    expect(isSummary(summary)).toBe(true);
    expect(sizeOf(smaller)).toBeLessThan(sizeOf(refused) * 0.8);
    expect(compactions(rig, 's_1')).toHaveLength(1);
  });

  it('too much for the model twice is a context error, which its parent hears', async () => {
    const rig = await open(NOTES, { limits: { context_window: 200_000, max_output_tokens: 8_000 } });
    const child = (messages: readonly AgentMessage[]): boolean => textOf(messages[0]?.content ?? []).startsWith('task');
    rig.model.fallback = (request) => {
      if (isSummary(request)) return NOTES;
      if (child(request.messages)) return refusal;
      const last = request.messages.at(-1);
      return last?.role === 'function_result'
        ? says(textOf(last.content))
        : asks(agentCall('c1', 'harness::spawn', { task: `task ${words(500)}` }));
    };
    const ended = await rig.turn('go', { session_id: 's_1' });
    expect(ended).toMatchObject({ status: 'completed' });
    expect(ended.result).toContain('The sub-agent failed');
    expect(ended.result).toContain('prompt is too long');
    expect(rig.model.requests.filter(({ messages }) => child(messages)).length).toBeLessThan(3);
    expect(callsOf(rig.model.requests[0]?.messages[0]?.content ?? [])).toEqual([]);
  });

  it('of a model that nobody knows is for the model to say: everything is sent, and summed up when it refuses', async () => {
    const model = new ScriptedModel();
    model.fallback = (request) => {
      if (isSummary(request)) return NOTES;
      return sizeOf(request) > 40_000 ? refusal : says('Right.');
    };
    const rig = await open(NOTES, { model, limits: { context_window: 0, max_output_tokens: 0 } });
    for (let turn = 1; turn <= 14; turn += 1)
      expect(await rig.turn(`message ${turn}: ${words(900)}`, { session_id: 's_1' })).toMatchObject({
        status: 'completed',
        result: 'Right.',
      });
    expect(compactions(rig, 's_1').length).toBeGreaterThan(0);
    expect(compactions(rig, 's_1').length).toBeLessThan(4);
  });
});

describe('a context worker that is not ours', () => {
  const alone = { siblings: '-context' };
  const others = { limits: { context_window: 8_000, max_output_tokens: 1_000 }, ...alone };

  it('is not needed while the conversation fits; after that the turn says what is missing', async () => {
    const rig = await open(NOTES, others);
    expect(await rig.turn('hello', { session_id: 's_1' })).toMatchObject({ status: 'completed', result: 'Right.' });
    const ended = await rig.turn(words(7_200), { session_id: 's_1' });
    expect(ended).toMatchObject({ status: 'failed', reason: 'harness.context_overflow' });
    expect(ended.result_error).toContain('there is no context worker');
  });

  it('that fails or takes too long is told of, and the conversation goes as it is', async () => {
    const rig = await open(NOTES, { ...others, config: 'context_timeout_ms: 20\n' });
    let fault: () => unknown = () => Promise.reject(new Error('out of order'));
    rig.function('context::assemble', () => fault());
    expect(await rig.turn('hello', { session_id: 's_1' })).toMatchObject({ status: 'completed', result: 'Right.' });
    fault = () => new Promise(() => undefined);
    expect(await rig.turn('again', { session_id: 's_1' })).toMatchObject({ status: 'completed', result: 'Right.' });
    fault = () => ({ messages: [] });
    expect(await rig.turn('and again', { session_id: 's_1' })).toMatchObject({ status: 'completed', result: 'Right.' });
    const notices = rig.events.filter((event) => event.type === 'notice');
    expect(notices).toHaveLength(3);
    expect(notices[0]).toMatchObject({ text: expect.stringContaining('out of order') });
  });

  it('that sums up again and again is taken at its word once in a step', async () => {
    const rig = await open(NOTES, others);
    const asked = rig.function('context::assemble', (payload) => {
      const { messages, system_prompt } = payload as { messages: AgentMessage[]; system_prompt: string };
      const applied = { initial_token_count: 9, compacted: true, summary: `Notes ${asked.length}.`, tail_start_index: 0, tokens_before: 0 };
      return { system_prompt, messages, token_count: 5, usable: 100, effective_max_output_tokens: 7, applied };
    });
    expect(await rig.turn('hello', { session_id: 's_1' })).toMatchObject({ status: 'completed', result: 'Right.' });
    expect(asked).toHaveLength(2);
    expect(compactions(rig, 's_1').map(({ summary }) => summary)).toEqual(['Notes 1.']);
  });

  it('is asked as the contract says, and what it has summed up is stored with what the model is to answer', async () => {
    const rig = await open(NOTES, others);
    const asked = rig.function('context::assemble', (payload) => {
      const { messages, system_prompt } = payload as { messages: AgentMessage[]; system_prompt: string };
      const applied = {
        initial_token_count: 9,
        capped_parts: 0,
        capped_tokens: 0,
        pruned: false,
        pruned_tokens: 0,
        compacted: messages.length > 2,
      };
      return {
        system_prompt: `${system_prompt} (assembled)`,
        messages: messages.slice(-1),
        token_count: 5,
        usable: 100_000,
        effective_max_output_tokens: 7,
        model_resolved: 'router',
        applied: messages.length > 2 ? { ...applied, summary: 'All of it.', tail_start_index: null, tokens_before: 8 } : applied,
        breakdown: {},
      };
    });
    for (const message of ['one', 'two']) await rig.turn(message, { session_id: 's_1' });
    expect(asked[0]).toMatchObject({
      model: { id: 'scripted-1', provider: 'scripted' },
      options: { lease_key: 's_1', previous_summary: null, allow_prune: true, allow_compaction: true },
    });
    expect(asked).toHaveLength(3);
    expect(asked[2]).toMatchObject({ options: { previous_summary: 'All of it.', allow_compaction: false } });
    const entries = rig.disk('s_1').entries;
    const second = entries.find(({ message }) => message?.role === 'user' && textOf(message.content) === 'two');
    expect(compactions(rig, 's_1')).toEqual([
      {
        summary: 'All of it.',
        tail_start_entry_id: second?.id,
        tokens_before: 8,
        summarized_head_tokens: 8,
        initial_token_count: 9,
        assembled_token_count: 5,
        usable_input_tokens: 100_000,
        effective_max_output_tokens: 7,
      },
    ]);
    expect(rig.model.requests.at(-1)?.system_prompt).toMatch(/\(assembled\)$/);
  });
});
