import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AssistantMessage, type ContentBlock, callsOf, entryIds, type JsonValue } from '#libs/contracts';
import { addressCalls, type PlanContext, type PlannedCall, planCalls } from './calls.js';

const messageOf = (content: ContentBlock[], stop_reason: AssistantMessage['stop_reason'] = 'function_call'): AssistantMessage => ({
  role: 'assistant',
  content,
  model: 'm',
  provider: 'p',
  stop_reason,
  timestamp: 0,
});
const call = (id: string, function_id: string, args: JsonValue = {}): ContentBlock => ({
  type: 'function_call',
  id,
  function_id,
  arguments: args,
});
const wrap = (args: JsonValue): ContentBlock => call('c', 'agent_trigger', args);
const open: PlanContext = { refusalOf: () => null, isHooked: () => false };
const planOf = (block: ContentBlock, context = open): PlannedCall => planCalls(messageOf([block]), context)[0] as PlannedCall;

describe('addressCalls', () => {
  const address = (content: ContentBlock[], known: string[] = []) =>
    callsOf(addressCalls(messageOf(content), 't_1', 3, (id) => known.includes(id)).content).map(({ id }) => id);

  it('keeps the ids of a provider that are new', () => {
    expect(address([call('toolu_01A-b_c', 'f'), call('call_2', 'g')])).toEqual(['toolu_01A-b_c', 'call_2']);
  });
  it('gives its own to empty, repeated and known ids, and to those that fit no entry', () => {
    const ids = address(
      [
        call('', 'f', 1),
        call('', 'f', 2),
        call('a', 'f', 1),
        call('a', 'f', 2),
        call('old', 'f'),
        call('a b', 'f'),
        call('x'.repeat(65), 'f'),
      ],
      ['old'],
    );
    expect(new Set(ids).size).toBe(7);
    expect(ids.filter((id) => !id.startsWith('fc_t_1_3_'))).toEqual(['a']);
  });
  it('runs an exact repeat inside one message once, wherever it stands', () => {
    expect(address([call('a', 'f', { x: 1 }), call('a', 'f', { x: 1 })])).toEqual(['a']);
    expect(address([call('a', 'f', 1), call('a', 'f', 2), call('a', 'f', 1)])).toHaveLength(2);
    expect(address([call('', 'f'), call('', 'f')])).toHaveLength(2);
  });
  it('leaves no id that another entry of the turn has', () => {
    const taken = [
      entryIds.assistant('t_1', 3),
      entryIds.assistant('t_1', 12),
      entryIds.error('t_1'),
      entryIds.notice('t_1', 'stopped'),
      entryIds.notice('t_1', 'max_turns'),
      entryIds.nudge('t_1', 2),
      entryIds.compaction('t_1', 0),
    ];
    const hostile = taken.map((id) => id.slice('e_t_1_'.length));
    for (const id of address(hostile.map((bad) => call(bad, 'f')))) expect(taken).not.toContain(entryIds.result('t_1', id));
  });
  it('makes every id unique and safe whatever the model gives, and the same ones again', () => {
    const anyId = fc.oneof(fc.string(), fc.constantFrom('a', '', 'fc_t_1_3_0', 'fc_t_1_3_1', '3_assistant', 'error'));
    fc.assert(
      fc.property(fc.array(fc.tuple(anyId, fc.constantFrom('f', 'g')), { maxLength: 6 }), fc.array(anyId), (given, known) => {
        const content = given.map(([id, fn], index) => call(id, fn, index));
        const ids = address(content, known);
        expect(ids).toHaveLength(given.length);
        expect(new Set(ids).size).toBe(ids.length);
        for (const id of ids) {
          expect(id).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
          expect(known).not.toContain(id);
        }
        expect(address(content, known)).toEqual(ids);
      }),
    );
  });
  it('leaves a message without calls as it is', () => {
    const message = messageOf([{ type: 'text', text: 'hi' }], 'end');
    expect(addressCalls(message, 't', 0, () => true)).toBe(message);
  });
});

describe('planCalls', () => {
  it.each<[string, JsonValue, string, JsonValue]>([
    ['an object payload', { function: 'a::b', description: 'd', payload: { x: 1 } }, 'a::b', { x: 1 }],
    ['no payload', { function: 'a::b', description: 'd' }, 'a::b', {}],
    ['a null payload', { function: 'a::b', description: 'd', payload: null }, 'a::b', {}],
    ['arguments beside the target', { function: 'a::b', x: 1, y: 2 }, 'a::b', { x: 1, y: 2 }],
    ['a text payload, which is fitted to the target later', { function: 'a::b', payload: '{"x":1}' }, 'a::b', '{"x":1}'],
    ['spaces around the target', { function: ' a::b\n', payload: {} }, 'a::b', {}],
    ['arguments as text', '{"function":"a::b","payload":{"x":1}}', 'a::b', { x: 1 }],
  ])('C25 unwraps agent_trigger with %s', (_name, given, function_id, args) => {
    expect(planOf(wrap(given))).toMatchObject({ function_id, arguments: args, refusal: null });
  });

  it.each<[string, JsonValue, string]>([
    ['no target', { payload: {} }, 'agent_trigger_no_target'],
    ['an empty target', { function: '  ' }, 'agent_trigger_no_target'],
    ['a target that is no text', { function: 7 }, 'agent_trigger_no_target'],
    ['empty arguments', '', 'agent_trigger_no_target'],
    ['broken text', '{"function":"a::b"', 'invalid_arguments'],
    ['a list', [1], 'invalid_arguments'],
    ['a list as text', '[1]', 'invalid_arguments'],
    ['a number', 4, 'invalid_arguments'],
  ])('refuses agent_trigger with %s', (_name, given, code) => {
    expect(planOf(wrap(given)).refusal?.code).toBe(code);
  });

  it.each<[string, JsonValue, JsonValue]>([
    ['nothing', null, {}],
    ['an empty text', '', {}],
    ['an object as text', '{"a":1}', { a: 1 }],
    ['an object', { a: 1 }, { a: 1 }],
  ])('C25 takes native arguments that are %s', (_name, given, args) => {
    expect(planOf(call('c', 'a::b', given))).toMatchObject({ arguments: args, refusal: null });
  });
  it.each<[string, JsonValue]>([
    ['cut text', '{"a":'],
    ['a text', 'hello'],
    ['a list', []],
    ['true', true],
  ])('C25 tells the model about native arguments that are %s', (_name, given) => {
    const { refusal } = planOf(call('c', 'a::b', given));
    expect(refusal?.code).toBe('invalid_arguments');
    expect(refusal?.message).toContain('a::b was not called: its arguments must be a JSON object');
  });

  it.each(['a::b', 'agent_trigger'])('never runs %s with arguments that the provider could not parse', (function_id) => {
    const unparsed = {
      _partial: true,
      _raw: '{"function":"a::b","payload":{"x":',
      _invalid: { error: 'cut', context: '' },
      function: 'a::b',
    };
    expect(planOf(call('c', function_id, unparsed)).refusal).toEqual({
      code: 'invalid_arguments',
      message: `${function_id} was not called: its arguments must be a JSON object, but were text that is not one.`,
    });
    expect(planOf(call('c', 'a::b', { _partial: true })).refusal).toBeNull();
  });

  it('asks the policy for the real target, not for agent_trigger', () => {
    const asked: string[] = [];
    const refusalOf = (id: string): string => {
      asked.push(id);
      return 'no';
    };
    const plan = planOf(wrap({ function: 'x::y', payload: {} }), { ...open, refusalOf });
    expect(asked).toEqual(['x::y']);
    expect(plan.refusal).toEqual({ code: 'policy_denied', message: 'no' });
  });

  it('never runs a call that a length stop cut off, and runs those before it', () => {
    const plan = planCalls(messageOf([call('1', 'a::b', { x: 1 }), call('2', 'a::c', { y: 'half' })], 'length'), open);
    expect(plan.map((p) => p.refusal?.code)).toEqual([undefined, 'arguments_truncated']);
  });
  it('runs a call that was whole before the text that was cut off', () => {
    expect(planCalls(messageOf([call('1', 'a::b'), { type: 'text', text: 'and th' }], 'length'), open)[0]?.refusal).toBeNull();
  });

  it('runs the first 128 calls of one answer', () => {
    const plan = planCalls(messageOf(Array.from({ length: 200 }, (_, n) => call(`c${n}`, 'a::b'))), open);
    expect(plan.map((p) => p.refusal?.code ?? 'runs')).toEqual(
      Array.from({ length: 200 }, (_, n) => (n < 128 ? 'runs' : 'too_many_calls')),
    );
  });

  it('takes submissions of the output contract without asking the policy, and unwraps a lone `result`', () => {
    const context: PlanContext = {
      refusalOf: () => 'no',
      isHooked: () => true,
      submissionFault: (value) => (value === 7 || (typeof value === 'object' && value !== null && 'ok' in value) ? null : 'wrong'),
    };
    const submit = (args: JsonValue) => planOf(call('c', 'submit_result', args), context).submission;
    expect(submit({ ok: true })).toEqual({ value: { ok: true }, fault: null });
    expect(submit({ result: 7 })).toEqual({ value: 7, fault: null });
    expect(submit({ result: 8 })).toEqual({ value: { result: 8 }, fault: 'wrong' });
    expect(planOf(call('c', 'submit_result', {}), { ...open, refusalOf: () => 'no' })).toMatchObject({
      submission: null,
      refusal: { code: 'policy_denied' },
    });
  });
});
