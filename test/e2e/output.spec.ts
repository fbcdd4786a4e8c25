import { afterEach, describe, expect, it } from 'vitest';
import {
  type ContentBlock,
  type JsonValue,
  type Model,
  type ProviderStreamRequest,
  type SendRequest,
  type TurnCompletedEvent,
  textOf,
} from '#libs/contracts';
import { scenarios } from '../support/replay.js';
import { agentCall, type Scripted, ScriptedModel, text } from '../support/scripted-model.js';
import { asks, held, says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';

let rig: TurnRig;
/** A second model, which cannot be held to a format. */
let plain: ScriptedModel;
let completed: TurnCompletedEvent[];
afterEach(async () => {
  expect(rig.faults()).toEqual([]);
  await rig.close();
});

async function open(native: Scripted[], submitting: Scripted[] = [], config = ''): Promise<void> {
  plain = new ScriptedModel(...submitting);
  rig = await TurnRig.open({
    model: new ScriptedModel(...native),
    config,
    prepare: async ({ bus }) => {
      await plain.register(bus, 'plain');
      for (const [id, supports_structured_output] of [
        ['scripted', true],
        ['plain', false],
      ] as const) {
        const model: Model = {
          id: `${id}-1`,
          provider: id,
          context_window: 200_000,
          max_output_tokens: 8_000,
          supports_tools: true,
          supports_structured_output,
        };
        await bus.trigger({ function_id: 'router::provider::register', payload: { id, models: [model] } });
      }
    },
  });
  completed = rig.on('harness::turn-completed', 'watch::completed', () => undefined) as TurnCompletedEvent[];
}
const want = (schema?: JsonValue, rest: Partial<SendRequest> = {}): Partial<SendRequest> => ({
  options: { functions: { allow: ['*'] }, output: { type: 'json', ...(schema === undefined ? {} : { schema }) } },
  ...rest,
});
const onPlain = { model: 'plain-1', provider: 'plain' };
const submit = (id: string, args: JsonValue): ContentBlock => ({
  type: 'function_call',
  id,
  function_id: 'submit_result',
  arguments: args,
});
const number = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
const lastUser = (request: ProviderStreamRequest | undefined): string =>
  textOf(request?.messages.findLast((message) => message.role === 'user')?.content ?? []);
const toolNames = (request: ProviderStreamRequest | undefined): string[] => (request?.tools ?? []).map((tool) => tool.name);

scenarios('an output contract asked of the provider', () => {
  it('is passed on as the response format, and its value is on the status, in the event and in the feed', async () => {
    await open([says('{"n": 3}')]);
    const ended = await rig.turn('go', want(number));
    expect(rig.model.requests[0]?.response_format).toEqual({ type: 'json', schema: number });
    expect(toolNames(rig.model.requests[0])).toEqual(['agent_trigger']);
    expect(ended).toMatchObject({ status: 'completed', result: { n: 3 }, result_error: null, reason: null });
    expect(await rig.status(ended.session_id)).toMatchObject({ result: { n: 3 }, result_error: null });
    expect(completed).toMatchObject([{ result: { n: 3 } }]);
    expect(completed[0]).not.toHaveProperty('result_error');
  });

  it('is kept over calls, and only the last answer counts', async () => {
    await open([{ content: [text('{"n": "not yet"}'), agentCall('c1', 'probe::run')] }, says('{"n": 4}')]);
    rig.function('probe::run');
    expect(await rig.turn('go', want(number))).toMatchObject({ result: { n: 4 }, steps: 2 });
    expect(rig.model.requests.map((request) => request.response_format?.type)).toEqual(['json', 'json']);
  });

  it('of a model that nobody knows is asked of its provider', async () => {
    await open([says('{"n": 3}')]);
    expect(await rig.turn('go', want(number, { model: 'brand-new' }))).toMatchObject({ result: { n: 3 } });
    expect(rig.model.requests[0]?.response_format?.type).toBe('json');
  });
});

scenarios('C36 an answer', () => {
  const taken: [string, string, JsonValue][] = [
    ['bare', '{"n": 1}', { n: 1 }],
    ['with space around it', ' \n{"n": 1}\n\n', { n: 1 }],
    ['in a fence', '```json\n{"n": 1}\n```', { n: 1 }],
    ['in a fence without a language', '```\n{"n": 1}\n```\n', { n: 1 }],
    ['in a fence that is not closed', '```json\n{"n": 1}', { n: 1 }],
    ['in a fence with other line ends', '```json\r\n{"n": 1}\r\n```', { n: 1 }],
    ['behind a byte order mark', '\uFEFF{"n": 1}', { n: 1 }],
    ['with a fence in a text of it', '```json\n{"n": 1, "code": "```js\\nx\\n```"}\n```', { n: 1, code: '```js\nx\n```' }],
  ];
  it.each(taken)('%s is taken', async (_how, answer, value) => {
    await open([says(answer)]);
    expect(await rig.turn('go', want(number))).toMatchObject({ status: 'completed', result: value, result_error: null, steps: 1 });
  });

  const refused: [string, string][] = [
    ['with prose before it', 'Here you are: {"n": 1}'],
    ['with prose behind a fence', '```json\n{"n": 1}\n```\nI hope that helps.'],
    ['that is two values', '{"n": 1}\n{"n": 2}'],
    ['that is two fences', '```json\n{"n": 1}\n```\n```json\n{"n": 2}\n```'],
    ['that is cut off', '{"n": 1'],
    ['that is a number', '1'],
    ['that is null', 'null'],
  ];
  it.each(refused)('%s is asked for again, and never guessed', async (_how, answer) => {
    await open([says(answer), says('{"n": 7}')]);
    expect(await rig.turn('go', want(number))).toMatchObject({ result: { n: 7 }, result_error: null, steps: 2 });
    expect(lastUser(rig.model.requests[1])).toContain('does not meet the output contract');
  });

  it('that is empty is asked for again', async () => {
    await open([{ content: [] }, says('{"n": 7}')]);
    expect(await rig.turn('go', want(number))).toMatchObject({ result: { n: 7 }, result_error: null });
  });

  it.each<[string, JsonValue]>([
    ['null', null],
    ['false', false],
    ['0', 0],
    ['""', ''],
    ['[]', []],
  ])('%s is a result and not nothing', async (answer, value) => {
    await open([says(answer)], [asks(submit('s1', { result: value }))]);
    const schema = { type: ['null', 'boolean', 'number', 'string', 'array'] };
    for (const rest of [{}, onPlain]) {
      const ended = await rig.turn('go', want(schema, rest));
      expect(ended).toMatchObject({ status: 'completed', result_error: null, reason: null });
      expect(ended.result).toEqual(value);
      expect((await rig.status(ended.session_id))?.result).toEqual(value);
    }
  });
});

scenarios('an answer that does not meet its contract', () => {
  it('is asked for again by the names of the fields that fail', async () => {
    const schema = {
      type: 'object',
      properties: {
        name: { type: 'string' },
        items: { type: 'array', items: { type: 'object', properties: { price: { type: 'number' } }, required: ['price'] } },
      },
      required: ['name', 'items'],
    };
    await open([
      says('{"items": []}'),
      says('{"name": "a", "items": [{"price": 1}, {"price": "two"}]}'),
      says('{"name": "a", "items": []}'),
    ]);
    expect(await rig.turn('go', want(schema))).toMatchObject({ result: { name: 'a', items: [] }, steps: 3 });
    expect(lastUser(rig.model.requests[1])).toContain('name is missing');
    expect(lastUser(rig.model.requests[2])).toContain('items.1.price must be number');
  });

  it('after the last try ends the turn with its text and why, and the session goes on', async () => {
    await open([says('one'), says('two'), says('three'), says('hello')]);
    const ended = await rig.turn('go', want(number));
    expect(ended).toMatchObject({ status: 'completed', reason: 'invalid_result', result: 'three', steps: 3 });
    expect(ended.result_error).toContain('not one JSON value');
    expect(completed[0]).toMatchObject({
      status: 'completed',
      reason: 'invalid_result',
      result: 'three',
      result_error: ended.result_error,
    });
    expect(await rig.status(ended.session_id)).toMatchObject({ result: 'three', result_error: ended.result_error });
    expect(await rig.turn('hi', { session_id: ended.session_id })).toMatchObject({ result: 'hello', result_error: null });
  });

  it('has as many tries as are configured', async () => {
    await open([says('one')], [], 'max_validation_retries: 0\n');
    expect(await rig.turn('go', want(number))).toMatchObject({ status: 'completed', reason: 'invalid_result', result: 'one', steps: 1 });
  });

  it('C29 takes no more generations than max_turns, and the end says so', async () => {
    await open([says('one'), says('two')]);
    const ended = await rig.turn('go', { options: { output: { type: 'json', schema: number }, max_turns: 2 } });
    expect(ended).toMatchObject({ status: 'completed', result: 'two', steps: 2 });
    expect(ended.result_error).not.toBeNull();
  });

  it('C29 a model that only ever makes the same denied call stops at the limit without a result', async () => {
    await open([]);
    rig.model.fallback = () => asks(agentCall('c', 'harness::send'));
    const ended = await rig.turn('go', {
      options: { functions: { allow: ['*'] }, output: { type: 'json', schema: number }, max_turns: 4 },
    });
    expect(ended).toMatchObject({ status: 'completed', reason: 'max_turns', result: null });
    expect(ended.result_error).toContain('limit of 4');
    expect(rig.model.requests).toHaveLength(4);
    expect(rig.lines(ended.session_id).at(-1)).toBe('(notice)');
  });

  it('cut off at the length limit is asked for again', async () => {
    await open([says('{"n": ', 'length'), says('{"n": 5}')]);
    expect(await rig.turn('go', want(number))).toMatchObject({ result: { n: 5 }, result_error: null });
  });

  it('is not judged while a message waits: both are answered', async () => {
    const first = held();
    await open([first.script, says('{"n": 6}')]);
    const { session_id, turn_id } = await rig.send('go', want(number));
    await first.begun;
    await rig.send('make it 6', { session_id });
    first.answer(text('not json'));
    expect(await rig.end(turn_id)).toMatchObject({ result: { n: 6 }, steps: 2 });
    expect(lastUser(rig.model.requests[1])).toBe('make it 6');
  });
});

scenarios('an output contract by submit_result', () => {
  const go = (schema?: JsonValue): ReturnType<TurnRig['turn']> => rig.turn('go', want(schema, onPlain));

  it('offers a function for it, takes what is handed in and ends the turn without calling anything', async () => {
    await open([], [asks(submit('s1', { n: 3 }))]);
    const ended = await go(number);
    expect(ended).toMatchObject({ status: 'completed', result: { n: 3 }, result_error: null, steps: 1 });
    const [request] = plain.requests;
    expect(request?.response_format ?? null).toBe(null);
    expect(request?.tools?.find((tool) => tool.name === 'submit_result')).toMatchObject({
      parameters: number,
      execution_mode: 'sequential',
    });
    expect((await rig.results(ended.session_id)).map((r) => [r.function_call_id, r.is_error])).toEqual([['s1', false]]);
  });

  it('needs no function policy', async () => {
    await open([], [asks(submit('s1', { n: 3 }))]);
    expect(await rig.turn('go', { ...onPlain, options: { output: { type: 'json', schema: number } } })).toMatchObject({ result: { n: 3 } });
    expect(toolNames(plain.requests[0])).toEqual(['submit_result']);
  });

  it('takes also a plain answer, fenced or not', async () => {
    await open([], [says('```json\n{"n": 3}\n```')]);
    expect(await go(number)).toMatchObject({ result: { n: 3 }, result_error: null });
  });

  it('of a value that is no object puts it into a field', async () => {
    await open([], [asks(submit('s1', { result: [1, 2] }))]);
    expect(await go({ type: 'array', items: { type: 'integer' } })).toMatchObject({ result: [1, 2] });
    expect(plain.requests[0]?.tools?.at(-1)?.parameters).toMatchObject({
      type: 'object',
      properties: { result: { type: 'array' } },
      required: ['result'],
    });
  });

  it('answers what does not fit with the field, and takes the next one', async () => {
    await open([], [asks(submit('s1', { n: 'three' })), asks(submit('s2', { n: 3 }))]);
    const ended = await go(number);
    expect(ended).toMatchObject({ result: { n: 3 }, result_error: null, steps: 2 });
    const [first] = await rig.results(ended.session_id);
    expect(first).toMatchObject({ is_error: true, details: { error: 'invalid_result' } });
    expect(textOf(first?.content ?? [])).toContain('n must be integer');
  });

  it('after the last try ends the turn with what was handed in and why', async () => {
    await open(
      [],
      ['a', 'b', 'c'].map((n) => asks(submit(n, { n }))),
    );
    const ended = await go(number);
    expect(ended).toMatchObject({ status: 'completed', reason: 'invalid_result', steps: 3 });
    expect(ended.result_error).toContain('n must be integer');
    expect(plain.requests).toHaveLength(3);
  });

  it('beside other calls lets them run, and none of a later step', async () => {
    await open([], [asks(agentCall('c1', 'probe::run'), submit('s1', { n: 3 }), agentCall('c2', 'probe::run'))]);
    const got = rig.function('probe::run');
    const ended = await go(number);
    expect(ended).toMatchObject({ result: { n: 3 }, steps: 1 });
    expect(got).toHaveLength(2);
    expect((await rig.results(ended.session_id)).map((r) => r.function_call_id)).toEqual(['c1', 's1', 'c2']);
  });

  it('beside a held call waits for that one', async () => {
    await open([], [asks(submit('s1', { n: 3 }), agentCall('c1', 'probe::run'))]);
    rig.function('probe::run');
    rig.on('harness::hook::pre-trigger', 'gate::hold', () => ({ decision: 'hold' }));
    const { session_id, turn_id } = await rig.send('go', want(number, onPlain));
    await rig.until(session_id, 'awaiting_functions');
    await rig.deliver(session_id, turn_id, 'c1', 'by hand');
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: { n: 3 }, result_error: null });
  });

  it.each(['delivered', 'released'])(
    'beside a held call that is %s after another message does not end the turn over that message',
    async (how) => {
      await open([], [asks(submit('s1', { n: 3 }), agentCall('c1', 'probe::run')), asks(submit('s2', { n: 4 }))]);
      rig.function('probe::run');
      rig.on('harness::hook::pre-trigger', 'gate::hold', () => ({ decision: 'hold' }));
      const { session_id, turn_id } = await rig.send('go', want(number, onPlain));
      await rig.until(session_id, 'awaiting_functions');
      await rig.send('make it 4', { session_id });
      if (how === 'released') await rig.release(session_id, turn_id, 'c1');
      else await rig.deliver(session_id, turn_id, 'c1', 'by hand');
      expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: { n: 4 }, steps: 2 });
    },
  );

  it('is not there for a turn that wants text: a call of it is a call of a function like any other', async () => {
    await open([asks(submit('s1', { n: 3 })), says('done')]);
    const ended = await rig.turn('go', { options: { functions: { allow: ['probe::*'] } } });
    expect(ended).toMatchObject({ result: 'done' });
    expect((await rig.results(ended.session_id))[0]).toMatchObject({ is_error: true, details: { error: 'policy_denied' } });
  });
});

describe('C37 a schema', () => {
  const tree = {
    $ref: '#/definitions/node',
    definitions: {
      node: {
        type: 'object',
        properties: { value: { type: 'integer' }, children: { type: 'array', items: { $ref: '#/definitions/node' } } },
        required: ['value'],
      },
    },
  };
  const usable: [string, JsonValue, JsonValue, JsonValue][] = [
    ['with $ref and recursion', tree, { value: 1, children: [{ value: 2 }] }, { value: 1, children: [{ value: 'two' }] }],
    [
      'with $defs of a newer draft',
      {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        $defs: { n: { type: 'integer' } },
        type: 'object',
        properties: { n: { $ref: '#/$defs/n' } },
        required: ['n'],
      },
      { n: 1 },
      { n: 'x' },
    ],
    [
      'with oneOf',
      {
        oneOf: [
          { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
          { type: 'object', properties: { b: { type: 'integer' } }, required: ['b'] },
        ],
      },
      { b: 1 },
      { c: 1 },
    ],
    ['with nullable', { type: 'object', properties: { a: { type: 'string', nullable: true } }, required: ['a'] }, { a: null }, { a: 1 }],
    [
      'with a format that nobody knows',
      { type: 'object', properties: { a: { type: 'string', format: 'phase-of-the-moon' } }, required: ['a'] },
      { a: 'x' },
      { a: 1 },
    ],
    [
      'with a format that is checked',
      { type: 'object', properties: { a: { type: 'string', format: 'date' } }, required: ['a'] },
      { a: '2024-02-29' },
      { a: 'tomorrow' },
    ],
    [
      'with keywords of vendors',
      {
        'x-order': 1,
        type: 'object',
        properties: { a: { type: 'string', 'x-widget': { big: true }, example: 'e', deprecated: true } },
        required: ['a'],
      },
      { a: 'x' },
      {},
    ],
    ['without a type', { properties: { a: { minimum: 3 } }, required: ['a'] }, { a: 3 }, { a: 1 }],
    ['of a list', { type: 'array', items: { type: 'integer' }, minItems: 2 }, [1, 2], [1]],
    [
      'with limits',
      {
        type: 'object',
        properties: { a: { enum: ['x', 'y'] }, b: { type: 'string', pattern: '^[a-z]+$', maxLength: 3 } },
        required: ['a'],
        additionalProperties: false,
      },
      { a: 'x', b: 'abc' },
      { a: 'x', b: 'ABC' },
    ],
    ['with an id', { $id: 'https://example.org/thing.json', type: 'object', required: ['a'] }, { a: 1 }, {}],
  ];
  it.each(usable)('%s is passed on as it is and checked here', async (_how, schema, good, bad) => {
    await open(
      [says(JSON.stringify(bad)), says(JSON.stringify(good))],
      [asks(submit('s1', Array.isArray(bad) ? { result: bad } : bad)), asks(submit('s2', Array.isArray(good) ? { result: good } : good))],
    );
    for (const rest of [{}, onPlain]) {
      const ended = await rig.turn('go', want(schema, rest));
      expect([ended.status, ended.steps, ended.result, ended.result_error]).toEqual(['completed', 2, good, null]);
    }
    expect(rig.model.requests[0]?.response_format).toEqual({ type: 'json', schema });
  });

  it.each<[string, JsonValue]>([
    ['with a type that there is not', { type: 'text' }],
    ['with a reference to nothing', { $ref: '#/definitions/nothing' }],
    ['with a reference to elsewhere', { $ref: 'https://example.org/other.json' }],
    ['with a pattern that is none', { type: 'string', pattern: '(' }],
    ['that is a text', 'object'],
    ['that is a list', [{ type: 'object' }]],
    ['that lets nothing pass', false],
  ])('%s is refused at the send, before any spend', async (_how, schema) => {
    await open([]);
    await expect(rig.turn('go', want(schema))).rejects.toThrow(/^harness\/invalid_request: options\.output\.schema /);
    expect(rig.model.requests).toEqual([]);
    expect((await rig.call<{ sessions: unknown[] }>('session::list')).sessions).toEqual([]);
  });

  it('used by two turns under one id is not mistaken for the other', async () => {
    const one = { $id: 'https://example.org/same.json', type: 'object', required: ['a'] };
    const two = { $id: 'https://example.org/same.json', type: 'object', required: ['b'] };
    await open([says('{"a": 1}'), says('{"b": 1}')]);
    expect(await rig.turn('go', want(one))).toMatchObject({ result: { a: 1 }, steps: 1 });
    expect(await rig.turn('go', want(two))).toMatchObject({ result: { b: 1 }, steps: 1 });
  });
});
