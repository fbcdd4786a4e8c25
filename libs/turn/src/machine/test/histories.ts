import fc from 'fast-check';
import type { AssistantMessage, ContentBlock, JsonValue, StopReason, StreamFrame } from '#libs/contracts';
import { MessageAccumulator } from '../../model/accumulator.js';
import type { TurnOptions } from '../../record/record.js';
import { AGENT_TRIGGER, SPAWN, SUBMIT_RESULT } from '../calls.js';
import type { TurnFailure } from '../decision.js';
import type { Happening, History, Reply } from './world.js';

/** Ids as providers give them: repeated, empty, too long, or such that they look like another entry of the turn. */
const callId = fc.constantFrom(
  'a',
  'b',
  'c',
  'd',
  '',
  ' ',
  'a b',
  '0_assistant',
  '1_assistant',
  'error',
  'stopped',
  'max_turns',
  'nudge_1',
  'x'.repeat(65),
  'e\u0301::/..',
  'fc_t_1_0_0',
);
const functionId = fc.constantFrom(
  't::one',
  't::two',
  't::hooked',
  't::hooked',
  't::hooked',
  SPAWN,
  SUBMIT_RESULT,
  'denied::x',
  'harness::send',
  'session::append',
  'nope::x',
  '',
);
const callArguments = fc.constantFrom<JsonValue>({}, { a: 1 }, '{"a":1}', '', null, '{"a":', [1], 7);

const call: fc.Arbitrary<ContentBlock> = fc
  .record({ id: callId, function_id: functionId, args: callArguments, wrapped: fc.boolean() })
  .map(({ id, function_id, args, wrapped }) =>
    wrapped
      ? { type: 'function_call', id, function_id: AGENT_TRIGGER, arguments: { function: function_id, description: 'd', payload: args } }
      : { type: 'function_call', id, function_id, arguments: args },
  );
const text: fc.Arbitrary<ContentBlock> = fc.constantFrom<ContentBlock>(
  { type: 'text', text: 'hm' },
  { type: 'text', text: '' },
  { type: 'thinking', text: 'so' },
);

const content = fc.oneof(
  { weight: 3, arbitrary: fc.array(call, { minLength: 1, maxLength: 4 }) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(text, fc.array(call, { maxLength: 4 }), fc.option(text))
      .map(([first, calls, last]) => [first, ...calls, ...(last === null ? [] : [last])]),
  },
  { weight: 1, arbitrary: fc.constant<ContentBlock[]>([]) },
);

const failure: fc.Arbitrary<TurnFailure | null> = fc.oneof(
  { weight: 6, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.boolean().map((retryable) => ({ code: 'llm.x', message: 'it broke', retryable })) },
);

const reply: fc.Arbitrary<Reply> = fc
  .record({ content, failure, sketched: fc.nat(3), cut: fc.boolean(), kept: fc.boolean() })
  .map(({ content: blocks, failure: broken, sketched, cut, kept }) => {
    const stop_reason: StopReason = cut ? 'length' : blocks.some((block) => block.type === 'function_call') ? 'function_call' : 'end';
    const message: AssistantMessage = {
      role: 'assistant',
      content: blocks,
      model: 'm',
      provider: 'p',
      stop_reason,
      timestamp: 0,
      usage: { input: 1, output: 1 },
    };
    const sketches = sketchesOf(message, sketched);
    return { message, sketches, failure: broken, partial: broken !== null && kept ? (sketches.at(-1) ?? null) : null };
  });

/** What the stream of a message would have stored of it after each of its first blocks. */
function sketchesOf(message: AssistantMessage, count: number): AssistantMessage[] {
  const accumulator = new MessageAccumulator('m', 'p');
  const sketches: AssistantMessage[] = [];
  for (const [index, block] of message.content.slice(0, count).entries()) {
    const partial = { ...message, content: message.content.slice(0, index + 1) };
    const frames: StreamFrame[] =
      block.type === 'function_call'
        ? [
            { type: 'functioncall_start', id: block.id },
            { type: 'functioncall_end', partial },
          ]
        : [{ type: 'text_start' }, { type: 'text_delta', delta: 'hm' }, { type: 'text_end', partial }];
    for (const frame of frames) accumulator.take(frame);
    const soFar = accumulator.partial(0);
    if (soFar !== null) sketches.push(soFar);
  }
  return sketches;
}

/** Wants `{a: number}`; what else the model says is nudged or given up. */
const OUTPUT: TurnOptions['output'] = { type: 'json', schema: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] } };

const options: fc.Arbitrary<TurnOptions> = fc
  .record({
    max_turns: fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 2, max: 6 }) }, { weight: 1, arbitrary: fc.integer({ min: 0, max: 1 }) }),
    functions: fc.constantFrom<TurnOptions['functions']>(
      { allow: ['t::*', SPAWN], deny: [], expose: 'agent_trigger' },
      { allow: ['*'], deny: ['denied::*'], expose: 'native' },
      { allow: ['*'], deny: [], expose: 'agent_trigger' },
      null,
    ),
    output: fc.constantFrom<TurnOptions['output']>({ type: 'text' }, { type: 'text' }, OUTPUT),
  })
  .map(({ max_turns, functions, output }) => ({
    model: 'm',
    provider: null,
    functions,
    max_turns,
    output,
    mode: null,
    system_prompt: null,
    system_prompt_strategy: 'enrich' as const,
    thinking_level: null,
    metadata: null,
    max_children: 8,
  }));

/** Mostly things go on; now and then something else happens. */
const KINDS: readonly [number, Happening['kind']][] = [
  [69, 'go'],
  [71, 'deliver'],
  [72, 'deliver-old'],
  [75, 'crash'],
  [77, 'stall'],
  [82, 'send'],
  [84, 'stop'],
  [87, 'fail-before'],
  [90, 'fail-after'],
  [96, 'resolve'],
  [97, 'expire'],
  [98, 'leftover'],
  [100, 'answer'],
];

const happening: fc.Arbitrary<Happening> = fc
  .record({ roll: fc.nat(99), n: fc.nat(5), at: fc.nat(7) })
  .map(({ roll, n, at }) => ({ kind: KINDS.find(([limit]) => roll < limit)?.[1] ?? 'go', n, at }));

/** Random histories of one session: a few turns, their model, and what happens to them in any order. */
export const histories: fc.Arbitrary<History> = fc
  .record({
    options,
    replies: fc.array(reply, { maxLength: 12, size: 'max' }),
    happenings: fc.array(happening, { maxLength: 150, size: 'max' }),
  })
  .map((history) => ({ ...history, happenings: [{ kind: 'send', n: 0, at: 0 }, ...history.happenings] }));
