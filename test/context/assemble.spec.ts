import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AgentMessage, errorCode, textOf } from '#libs/contracts';
import { compactionPrompt } from '#libs/prompts';
import { assistant, call, conversations, image, result, user } from '../../libs/local/src/context/test/conversations.js';
import { requestFaults } from '../support/invariants.js';
import { ScriptedModel } from '../support/scripted-model.js';
import { fails, held, says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';

interface Assembled {
  system_prompt: string;
  messages: AgentMessage[];
  token_count: number;
  usable: number;
  effective_max_output_tokens: number;
  model_resolved: string;
  applied: {
    initial_token_count: number;
    compacted: boolean;
    pruned: boolean;
    summary?: string;
    tail_start_index?: number | null;
    tokens_before?: number;
    capped_parts: number;
    pruned_tokens: number;
  };
  breakdown: {
    by_role: { [role: string]: number };
    by_part?: { [name: string]: number };
    system_prompt_tokens: number;
    tools_tokens: number;
    estimator: string;
  };
}

const model = new ScriptedModel();
let rig: TurnRig;
beforeAll(async () => {
  model.fallback = () => says('The notes.');
  rig = await TurnRig.open({ model, limits: { context_window: 20_000, max_output_tokens: 2_000 } });
});
afterAll(async () => {
  expect(rig.reports).toEqual([]);
  await rig.close();
});

const limits = (usable: number): object => ({
  id: 'scripted-1',
  provider: 'scripted',
  limits: { context_window: usable + 1_000, max_output_tokens: 1_000 },
});
const assemble = (messages: AgentMessage[], usable: number, options: object = {}, rest: object = {}): Promise<Assembled> =>
  rig.call('context::assemble', { model: limits(usable), messages, options: { reserved_tokens: 0, ...options }, ...rest });
const words = (tokens: number): string => 'word'.repeat(tokens);
/** A conversation of `turns` turns, each of about `size` tokens. */
const talk = (turns: number, size: number): AgentMessage[] =>
  Array.from({ length: turns }, (_, n) => [user(`${n} ${words(size / 2)}`), assistant({ type: 'text', text: words(size / 2) })]).flat();

describe('limits', () => {
  const budget = async (input: object, options: object = {}): Promise<[number, number, string]> => {
    const { usable, effective_max_output_tokens, model_resolved } = await rig.call<Assembled>('context::assemble', {
      model: input,
      messages: [user('hi')],
      options,
    });
    return [usable, effective_max_output_tokens, model_resolved];
  };

  it('come from the request, from the router, or are those of a small model', async () => {
    expect(await budget({ id: 'x', limits: { context_window: 100_000, max_output_tokens: 10_000 } })).toEqual([80_000, 10_000, 'inline']);
    expect(await budget({ id: 'x', limits: { context_window: 1_000_000, max_output_tokens: 10_000 } })).toEqual([
      970_000,
      10_000,
      'inline',
    ]);
    expect(await budget({ id: 'x', limits: { context_window: 100_000, max_output_tokens: 10_000, input_limit: 50_000 } })).toEqual([
      40_000,
      10_000,
      'inline',
    ]);
    expect(await budget({ id: 'scripted-1', provider: 'scripted' })).toEqual([16_000, 2_000, 'router']);
    expect(await budget({ id: 'nobody-knows-it' })).toEqual([8_192 - 1_024 - 819, 1_024, 'fallback']);
  });

  it('leave what is to stay free, and what the model may think', async () => {
    expect(await budget({ id: 'scripted-1' }, { reserved_tokens: 500 })).toEqual([17_500, 2_000, 'router']);
    expect(await budget({ id: 'claude-sonnet-4-5' }, { reserved_tokens: 0, thinking_level: 'low' })).toEqual([
      200_000 - 32_000 - 4_096,
      32_000,
      'router',
    ]);
  });
});

describe('context::assemble', () => {
  it('gives what fits as it is, with its sizes', async () => {
    const messages = [user('a'.repeat(40)), assistant({ type: 'text', text: 'b'.repeat(80) }), user('c'.repeat(20))];
    const tools = [{ name: 'f', description: 'd', parameters: {} }];
    const answer = await assemble(
      messages,
      10_000,
      { previous_summary: 'Before.', request_overhead_tokens: 7 },
      { system_prompt: 'Be kind.', tools, parts: { skills: 'x'.repeat(8) } },
    );
    expect(answer.messages).toEqual(messages);
    expect(answer.system_prompt).toMatch(/^Be kind\.\n\n[\s\S]+\n\n<notes>\nBefore\.\n<\/notes>$/);
    expect(answer.applied).toMatchObject({ compacted: false, pruned: false, capped_parts: 0, initial_token_count: answer.token_count });
    const { by_role, system_prompt_tokens, tools_tokens, by_part, estimator } = answer.breakdown;
    expect([by_role, by_part, estimator]).toEqual([{ user: 15, assistant: 20, function_result: 0, custom: 0 }, { skills: 2 }, 'heuristic']);
    expect(answer.token_count).toBe(35 + system_prompt_tokens + tools_tokens + 7);
  });

  it('leaves custom messages out, and says where the tail begins in the messages that it was given', async () => {
    const custom: AgentMessage = { role: 'custom', custom_type: 'note', content: [{ type: 'text', text: 'for people' }], timestamp: 1 };
    const messages = talk(10, 400)
      .flatMap((message) => [custom, message])
      .concat(user('and now?'));
    const answer = await assemble(messages, 3_000);
    expect(answer.messages.some(({ role }) => role === 'custom')).toBe(false);
    expect(answer.applied).toMatchObject({ compacted: true, summary: 'The notes.' });
    const start = answer.applied.tail_start_index ?? -1;
    expect(messages[start]).toEqual(answer.messages[0]);
    expect(answer.messages).toEqual(messages.slice(start).filter(({ role }) => role !== 'custom'));
  });

  it('prunes old results before anything is summed up', async () => {
    const messages = Array.from({ length: 20 }, (_, n) => [assistant(call(`c${n}`)), result(`c${n}`, words(1_000))]).flat();
    const answer = await assemble([user('go'), ...messages], 16_000);
    expect(answer.applied).toMatchObject({ pruned: true, compacted: false });
    expect(answer.token_count).toBe(answer.applied.initial_token_count - answer.applied.pruned_tokens);
    const kept = await assemble([user('go'), ...messages], 16_000, { allow_prune: false });
    expect(kept.applied).toMatchObject({ pruned: false, compacted: true });
  });

  it('never exceeds what the model takes, parts no call from its result, and keeps what is to be answered', async () => {
    await fc.assert(
      fc.asyncProperty(
        conversations,
        fc.integer({ min: 800, max: 12_000 }),
        fc.boolean(),
        fc.boolean(),
        async (messages, usable, allow_compaction, allow_prune) => {
          let answer: Assembled;
          try {
            answer = await assemble(
              messages,
              usable,
              { allow_compaction, allow_prune, request_overhead_tokens: 50 },
              { system_prompt: 'Be kind.' },
            );
          } catch (error) {
            expect(errorCode(error)).toBe('context/overflow');
            return;
          }
          expect(answer.token_count).toBeLessThanOrEqual(answer.usable);
          expect(requestFaults(answer.messages)).toEqual([]);
          expect(textOf(answer.messages.at(-1)?.content ?? [])).toBe(textOf(messages.at(-1)?.content ?? []));
          const { by_role, system_prompt_tokens } = answer.breakdown;
          expect(answer.token_count).toBe(Object.values(by_role).reduce((sum, one) => sum + one, 0) + system_prompt_tokens + 50);
          const again = await assemble(
            answer.messages,
            usable,
            { allow_prune, request_overhead_tokens: 50 },
            { system_prompt: answer.system_prompt },
          );
          expect([again.messages, again.system_prompt]).toEqual([answer.messages, answer.system_prompt]);
          if (answer.applied.compacted) expect(answer.token_count).toBeLessThan(answer.applied.initial_token_count);
        },
      ),
      { numRuns: 150 },
    );
  });

  it('C33 begins as before while a conversation grows, but for rare steps, also when nothing can be summed up', async () => {
    model.fallback = () => fails('no summaries today');
    const messages: AgentMessage[] = [];
    let before: string[] = [];
    let changes = 0;
    for (let n = 0; n < 120; n += 1) {
      messages.push(...talk(1, 200), assistant(call(`c${n}`)), result(`c${n}`, words(100)));
      const answer = await assemble([...messages, user('next')], 5_000, { lease_key: 's_growing' });
      const sent = answer.messages.slice(0, -1).map((message) => JSON.stringify(message));
      if (before.some((message, index) => message !== sent[index])) changes += 1;
      before = sent;
    }
    model.fallback = () => says('The notes.');
    expect(changes).toBeGreaterThan(5);
    expect(changes).toBeLessThan(50);
  });

  it('fails clearly when nothing makes it fit', async () => {
    await expect(assemble([user(words(3_000))], 2_000)).rejects.toThrow(
      /^context\/overflow: .*3000 the last message; the model takes 2000/,
    );
    await expect(assemble([user('hi')], 100, {}, { system_prompt: words(200) })).rejects.toThrow('context/overflow');
  });

  it('refuses what is no request, naming it', async () => {
    await expect(rig.call('context::assemble', { messages: [] })).rejects.toThrow(/^context\/invalid_request: .*model/);
    await expect(assemble([user('a'), { role: 'user', content: [{ type: 'text' }], timestamp: 1 } as never], 100)).rejects.toThrow(
      /^context\/invalid_request: messages\.1/,
    );
  });

  it('C18 keeps images within what models take', async () => {
    const messages = Array.from(
      { length: 30 },
      () => ({ ...user('look'), content: [image(1_048_576), { type: 'text', text: 'look' }] }) as AgentMessage,
    );
    const answer = await assemble(messages, 400_000);
    const images = answer.messages.flatMap(({ content }) => content.filter(({ type }) => type === 'image'));
    expect(images.length).toBeLessThanOrEqual(16);
    expect(answer.messages.at(-1)).toEqual(messages.at(-1));
    expect(textOf(answer.messages[0]?.content ?? [])).toContain('was left out');
  });
});

describe('context::compact', () => {
  interface Compacted {
    status: string;
    summary?: string;
    tail_start_index?: number | null;
    tokens_before?: number;
    tokens_after?: number;
    used_prior_summary?: boolean;
  }
  const compact = (messages: AgentMessage[], options: object = {}): Promise<Compacted> =>
    rig.call('context::compact', { model: { id: 'scripted-1', provider: 'scripted' }, messages, options });

  it('sums up the older part and says where the rest begins', async () => {
    const messages = talk(6, 400);
    expect(await compact(messages, { preserve_recent_tokens: 100 })).toEqual({
      status: 'ok',
      summary: 'The notes.',
      tail_start_index: 8,
      tokens_before: 1_604,
      tokens_after: 805,
      used_prior_summary: false,
    });
    expect(await compact(messages, { preserve_recent_tokens: 0, tail_turns: 0 })).toMatchObject({ status: 'ok', tail_start_index: null });
  });

  it('goes on from a summary, and passes on what the person asks for, cut to its limit', async () => {
    const before = model.requests.length;
    expect(
      await compact(talk(6, 400), {
        preserve_recent_tokens: 10,
        tail_turns: 1,
        previous_summary: 'Earlier notes.',
        instructions: `  keep names ${'x'.repeat(3_000)}`,
      }),
    ).toMatchObject({ used_prior_summary: true });
    const asked = model.requests[before];
    const said = textOf(asked?.messages[0]?.content ?? []);
    expect(asked?.system_prompt).toBe(compactionPrompt());
    expect(said).toContain('<notes>\nEarlier notes.\n</notes>');
    expect(said).toMatch(/keep names x{1989}$/);
  });

  it('says that there is nothing to sum up, or that no summary could be had', async () => {
    expect(await compact([])).toEqual({ status: 'empty' });
    expect(await compact([user('hi')])).toEqual({ status: 'empty' });
    model.plays(fails('no'));
    expect(await compact(talk(6, 400), { preserve_recent_tokens: 10 })).toEqual({ status: 'overflow' });
    model.plays(says(''));
    expect(await compact(talk(6, 400), { preserve_recent_tokens: 10 })).toEqual({ status: 'overflow' });
  });

  it('is done by one at a time for a key', async () => {
    const slow = held();
    model.plays(slow.script);
    const first = compact(talk(6, 400), { preserve_recent_tokens: 10, lease_key: 's_busy' });
    await slow.begun;
    expect(await compact(talk(6, 400), { preserve_recent_tokens: 10, lease_key: 's_busy' })).toEqual({ status: 'busy' });
    expect(await compact(talk(6, 400), { preserve_recent_tokens: 10, lease_key: 's_other' })).toMatchObject({ status: 'ok' });
    slow.answer({ type: 'text', text: 'Slow notes.' });
    expect(await first).toMatchObject({ status: 'ok', summary: 'Slow notes.' });
    expect(await compact(talk(6, 400), { preserve_recent_tokens: 10, lease_key: 's_busy' })).toMatchObject({ status: 'ok' });
  });

  it('is done in parts when the conversation is too long for one request, each within the window', async () => {
    const before = model.requests.length;
    model.fallback = (request) => {
      const said = textOf(request.messages[0]?.content ?? []);
      return says(`Notes of ${said.includes('<notes>') ? 'more' : 'one'} part.`);
    };
    expect(await compact(talk(60, 1_000), { preserve_recent_tokens: 1_000 })).toMatchObject({
      status: 'ok',
      summary: 'Notes of more part.',
    });
    model.fallback = () => says('The notes.');
    const asked = model.requests.slice(before);
    expect(asked.length).toBeGreaterThan(2);
    for (const request of asked) expect(JSON.stringify(request.messages).length / 4).toBeLessThan(16_000);
  });
});

describe('context::prune and context::count-tokens', () => {
  it('prune without a model, by what they are told', async () => {
    const messages = [assistant(call('1')), result('1', words(1_000)), assistant(call('2')), result('2', words(1_000))];
    const pruned = await rig.call('context::prune', { messages, options: { protect_recent_tokens: 1_000, min_free_tokens: 100 } });
    expect(pruned).toMatchObject({ pruned_parts: 1, scanned_parts: 2 });
    expect(await rig.call('context::prune', { messages })).toEqual({ messages, pruned_parts: 0, pruned_tokens: 0, scanned_parts: 2 });
  });

  it('count by role and by part', async () => {
    const tools = [{ name: 'f', description: 'd', parameters: {} }];
    const counted = await rig.call('context::count-tokens', {
      model: { id: 'x' },
      messages: [user('a'.repeat(40))],
      system_prompt: 'b'.repeat(20),
      tools,
      parts: { p: 'cccc' },
    });
    expect(counted).toEqual({
      tokens: 15 + 3,
      estimator: 'heuristic',
      by_role: { user: 10, assistant: 0, function_result: 0, custom: 0 },
      by_part: { p: 1 },
      tools_tokens: 3,
    });
  });
});
