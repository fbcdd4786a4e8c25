import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type AgentFunction,
  type AgentMessage,
  type AssistantMessage,
  type ChatRequest,
  callsOf,
  errorMessage,
  type FunctionCallBlock,
  type JsonObject,
  type JsonValue,
  type Schema,
  type StreamFrame,
  textOf,
} from '#libs/contracts';
import { violation } from '#libs/iii';
import { makeRig, type Rig, terminals, types } from '../../router/test/rig.js';
import { DemoProviderModule } from './demo.module.js';
import { DemoProvider } from './demo.provider.js';

let rig: Rig;
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'demo-'));
  rig = await makeRig({ modules: [DemoProviderModule] });
  await new DemoProvider().register(rig.bus);
});
afterEach(async () => {
  await rig.close();
  await rm(folder, { recursive: true });
});

const user = (text: string): AgentMessage => ({ role: 'user', content: [{ type: 'text', text }], timestamp: 1 });
const tool = (name: string): AgentFunction => ({ name, description: name, parameters: { type: 'object' } });
const agentTrigger = [tool('agent_trigger')];

async function generate(request: Partial<ChatRequest>): Promise<{ message: AssistantMessage; frames: StreamFrame[] }> {
  const { frames } = await rig.chat({ model: 'demo', ...request });
  const last = frames[frames.length - 1];
  if (last?.type !== 'done' && last?.type !== 'error') throw new Error('no terminal frame');
  return { message: last.type === 'done' ? last.message : last.error, frames };
}

/** Makes real functions of a folder, and gives what a turn needs to call them. */
function addFunctions(): void {
  rig.bus.registerFunction({ id: 'coder::read-file', description: 'Reads a file' }, async (payload) => {
    const { path } = payload as { path: string };
    return { path, content: await readFile(join(folder, path), 'utf8') };
  });
  rig.bus.registerFunction({ id: 'coder::list-folder', description: 'Lists a folder' }, () => ({
    entries: [
      { name: 'src', kind: 'dir' },
      { name: 'README.md', kind: 'file' },
    ],
  }));
  rig.bus.registerFunction({ id: 'coder::search', description: 'Searches' }, () => ({
    content_matches: [{ path: 'a.ts', line: 3, column: 1, text: 'TODO: later' }],
    path_matches: [],
    truncated: false,
  }));
  rig.bus.registerFunction({ id: 'shell::exec', description: 'Runs a command' }, (payload) => ({
    stdout: JSON.stringify(payload),
    stderr: '',
    exit_code: 0,
  }));
  rig.bus.registerFunction({ id: 'echo::back' }, (payload) => payload);
}

/** A turn as a loop runs it: calls go to the bus when `allow` has them. Returns all that was said and called. */
async function turn(
  text: string,
  options: { tools?: AgentFunction[]; allow?: (id: string) => boolean; request?: Partial<ChatRequest>; before?: AgentMessage[] } = {},
): Promise<{ final: AssistantMessage; called: string[][]; messages: AgentMessage[]; calls: FunctionCallBlock[] }> {
  const tools = options.tools ?? agentTrigger;
  const messages: AgentMessage[] = [...(options.before ?? []), user(text)];
  const called: string[][] = [];
  const calls: FunctionCallBlock[] = [];
  for (let step = 0; step < 10; step++) {
    const { message } = await generate({ messages: [...messages], tools, ...options.request });
    messages.push(message);
    const asked = callsOf(message.content).filter((call) => call.function_id !== 'submit_result');
    if (asked.length === 0) return { final: message, called, messages, calls };
    expect(message.stop_reason).toBe('function_call');
    calls.push(...asked);
    called.push(asked.map(targetOf));
    for (const call of asked) messages.push(await run(call, options.allow ?? (() => true)));
  }
  throw new Error('the turn does not end');
}

const targetOf = (call: FunctionCallBlock): string =>
  call.function_id === 'agent_trigger' ? String((call.arguments as JsonObject)['function']) : call.function_id;

async function run(call: FunctionCallBlock, allow: (id: string) => boolean): Promise<AgentMessage> {
  const function_id = targetOf(call);
  const payload: JsonValue | undefined = call.function_id === 'agent_trigger' ? (call.arguments as JsonObject)['payload'] : call.arguments;
  const result = (text: string, is_error: boolean): AgentMessage => ({
    role: 'function_result',
    function_call_id: call.id,
    function_id,
    content: [{ type: 'text', text }],
    details: null,
    is_error,
    timestamp: 2,
  });
  if (!allow(function_id)) return result(`denied by policy: ${function_id}`, true);
  try {
    return result(JSON.stringify(await rig.call(function_id, payload)), false);
  } catch (error) {
    return result(errorMessage(error), true);
  }
}

const README =
  '# Sunflower\n\n[![badge](x)](y)\n\nA small server\nthat grows.\n\n## Install\n\n```sh\n# not a heading\nnpm i\n```\n\n## Use\n\nText.\n';

describe('the demo provider acts as an agent', () => {
  const request = 'read README.md and tell me what this project is';
  beforeEach(async () => {
    addFunctions();
    await writeFile(join(folder, 'README.md'), README);
  });

  it('finds a function, reads the file and tells what is in it (agent_trigger)', async () => {
    const { final, called, calls } = await turn(request);
    expect(called).toEqual([['engine::functions::list'], ['coder::read-file']]);
    expect(calls[0]).toMatchObject({
      function_id: 'agent_trigger',
      arguments: { function: 'engine::functions::list', payload: { prefix: 'coder::' } },
    });
    expect(calls[1]?.arguments).toEqual({ function: 'coder::read-file', description: 'Read README.md', payload: { path: 'README.md' } });
    const text = textOf(final.content);
    expect(text).toContain('titled **Sunflower**');
    expect(text).toContain('> A small server that grows.');
    expect(text).toContain('- Install\n- Use');
    expect(text).not.toContain('not a heading');
    expect(text).toContain('not a language model');
    expect(final.stop_reason).toBe('end');
  });

  it('calls native tools directly', async () => {
    const { final, called, calls } = await turn(request, { tools: [tool('coder::read-file')] });
    expect(called).toEqual([['coder::read-file']]);
    expect(calls[0]).toMatchObject({ function_id: 'coder::read-file', arguments: { path: 'README.md' } });
    expect(textOf(final.content)).toContain('Sunflower');
  });

  it('says the same in the same situation', async () => {
    const strip = (message: AgentMessage): AgentMessage => ({ ...message, timestamp: 0 });
    const [a, b] = [await turn(request), await turn(request)];
    expect(a.messages.map(strip)).toEqual(b.messages.map(strip));
  });

  it('does several things in order, and several files in one message', async () => {
    await writeFile(join(folder, 'b.txt'), 'bee');
    const { called, final } = await turn('list the files, then search for "TODO" in src, read README.md and b.txt and run `date -u`');
    expect(called).toEqual([
      ['engine::functions::list'],
      ['coder::list-folder'],
      ['coder::search'],
      ['coder::read-file', 'coder::read-file'],
      ['shell::exec'],
    ]);
    const text = textOf(final.content);
    for (const part of [
      '- `src/`',
      '`a.ts:3` TODO: later',
      'Sunflower',
      'bee',
      'ended with exit code 0',
      '\\"args\\":[\\"-u\\"]'.replaceAll('\\', ''),
    ])
      expect(text).toContain(part);
  });

  it('does not call what the listing leaves out, and says how to allow it', async () => {
    const { called, final } = await turn('fetch https://example.com/a.');
    expect(called).toEqual([['engine::functions::list']]);
    expect(textOf(final.content)).toMatch(/could not fetch a page: `web::fetch` is not among .*options\.functions\.allow/);
  });

  it('says that a call was refused by the policy, and how to allow it', async () => {
    const { called, final } = await turn(request, { allow: (id) => id === 'engine::functions::list' });
    expect(called).toEqual([['engine::functions::list'], ['coder::read-file']]);
    expect(textOf(final.content)).toMatch(/`coder::read-file` was refused: denied by policy.*\n\nTo allow it, add `coder::read-file`/);
  });

  it('tries directly when the listing itself is refused', async () => {
    const { called, final } = await turn(request, { allow: (id) => id !== 'engine::functions::list' });
    expect(called).toEqual([['engine::functions::list'], ['coder::read-file']]);
    expect(textOf(final.content)).toContain('Sunflower');
  });

  it('reports a failed call once and ends', async () => {
    const { called, final } = await turn('read missing.md');
    expect(called).toHaveLength(2);
    expect(textOf(final.content)).toContain('The call of `coder::read-file` failed: ENOENT');
  });

  it('answers the latest message only, with call ids that are new in the session', async () => {
    const first = await turn(request);
    const second = await turn('list the files', { before: first.messages });
    expect(second.called).toEqual([['engine::functions::list'], ['coder::list-folder']]);
    const ids = [...first.calls, ...second.calls].map((call) => call.id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('lists what may be called', async () => {
    const { called, final } = await turn('which functions do you have?');
    expect(called).toEqual([['engine::functions::list']]);
    expect(textOf(final.content)).toContain('- `coder::read-file`');
  });
});

describe('the demo provider answers in words', () => {
  it('without tools: politely, with a summary of the request', async () => {
    const { final, called } = await turn('read README.md please', { tools: [] });
    expect(called).toEqual([]);
    expect(textOf(final.content)).toMatch(
      /You wrote 3 words: "read README.md please"[\s\S]*To read README.md I would need functions[\s\S]*not a language model/,
    );
  });

  it('to small talk, also when tools are there', async () => {
    const { final, called } = await turn('hello!');
    expect(called).toEqual([]);
    expect(textOf(final.content)).toContain('"hello!"');
  });

  it('thinks when a level is set', async () => {
    const { message, frames } = await generate({ messages: [user('hello')], thinking_level: 'low' });
    expect(message.content[0]).toMatchObject({ type: 'thinking' });
    expect(types(frames)).toContain('thinking_start thinking_delta');
  });

  it('streams word by word, well formed, with usage and no cost', async () => {
    const { message, frames } = await generate({ messages: [user('über 😀 emoji')], system_prompt: 'x'.repeat(40) });
    const said = frames.reduce((all, frame) => (frame.type === 'text_delta' ? all + frame.delta : all), '');
    expect(said).toBe(textOf(message.content));
    expect(frames.filter((frame) => frame.type === 'text_delta').length).toBeGreaterThan(10);
    expect(types(frames)).toMatch(/^start text_start (text_delta )+text_end usage done$/);
    expect(message.usage).toMatchObject({
      input: Math.ceil((40 + 'über 😀 emoji'.length) / 4),
      output: Math.ceil(said.length / 4),
      cost_usd: 0,
    });
    expect(terminals(frames)).toBe(1);
  });
});

describe('the demo provider answers with JSON', () => {
  const schemas: [string, JsonValue][] = [
    [
      'an object',
      {
        type: 'object',
        properties: { summary: { type: 'string' }, n: { type: 'integer', minimum: 3 }, ok: { type: 'boolean' } },
        required: ['summary', 'n', 'ok'],
        additionalProperties: false,
      },
    ],
    [
      'references',
      {
        definitions: {
          T: { type: 'object', properties: { kids: { type: 'array', items: { $ref: '#/definitions/T' } } }, required: ['kids'] },
        },
        $ref: '#/definitions/T',
      },
    ],
    [
      'unions and limits',
      {
        type: 'object',
        required: ['a', 'b', 'c', 'd'],
        properties: {
          a: { anyOf: [{ type: 'string', minLength: 4, maxLength: 6 }] },
          b: { enum: ['x', 'y'] },
          c: { type: 'array', minItems: 2, items: { type: 'number', exclusiveMinimum: 1 } },
          d: { const: 7 },
        },
      },
    ],
    ['a string', { type: 'string', maxLength: 5 }],
    [
      'an array',
      {
        type: 'array',
        minItems: 1,
        items: {
          allOf: [
            { type: 'object', required: ['p'], properties: { p: { type: ['null', 'integer'], multipleOf: 5, minimum: 6 } } },
            { required: ['q'] },
          ],
        },
      },
    ],
  ];
  it.each(schemas)('that meets %s', async (_, schema) => {
    const { message } = await generate({ messages: [user('hello')], response_format: { type: 'json', schema } });
    expect(violation(schema as Schema, JSON.parse(textOf(message.content)))).toBeNull();
  });

  it('after the calls that the request needs, by submit_result where that is the way', async () => {
    addFunctions();
    await writeFile(join(folder, 'README.md'), README);
    const submit = {
      ...tool('submit_result'),
      parameters: { type: 'object', properties: { summary: { type: 'string' } }, required: ['summary'] },
    };
    const { called, final } = await turn('read README.md', { tools: [...agentTrigger, submit] });
    expect(called).toEqual([['engine::functions::list'], ['coder::read-file']]);
    const [handed] = callsOf(final.content);
    expect(handed).toMatchObject({ function_id: 'submit_result' });
    expect(JSON.stringify(handed?.arguments)).toContain('Sunflower');
  });
});

describe('scripts of the demo provider', () => {
  beforeEach(addFunctions);

  it('makes calls one after another and together, and reports them', async () => {
    const { called, final, calls } = await turn(
      '/call echo::back {"n": 1, "s": "a && b"}\n/call echo::back {"n": 2} && echo::back {\n "n": 3\n}\n/call nope::x',
    );
    expect(called).toEqual([['echo::back'], ['echo::back', 'echo::back'], ['nope::x']]);
    expect(calls.map((call) => (call.arguments as JsonObject)['payload'])).toEqual([{ n: 1, s: 'a && b' }, { n: 2 }, { n: 3 }, {}]);
    const text = textOf(final.content);
    expect(text).toContain('The script made 4 calls; 1 failed:');
    expect(text).toContain('- `echo::back`: ok, {"n":1,"s":"a && b"}');
    expect(text).toContain('- `nope::x`: error, ');
  });

  it('follows native exposure', async () => {
    const { calls } = await turn('/call echo::back {"n": 1}', { tools: [tool('echo::back')] });
    expect(calls[0]).toMatchObject({ function_id: 'echo::back', arguments: { n: 1 } });
  });

  it('says and thinks before a call and at the end', async () => {
    const { messages } = await turn('/think hm\n/say first\n/call echo::back {}\n/say last words');
    const said = messages.filter((m) => m.role === 'assistant');
    expect(said[0]?.content.map((block) => block.type)).toEqual(['thinking', 'text', 'function_call']);
    expect(textOf(said[1]?.content ?? [])).toMatch(/^last words\n\nThe script made 1 call:/);
  });

  it('says exactly what it is told, and nothing more', async () => {
    expect(textOf((await turn('/say just this')).final.content)).toBe('just this');
    expect(textOf((await turn('/json {"a":\n [1, 2]}')).final.content)).toBe('{"a":\n [1, 2]}');
    expect(textOf((await turn('/json not json', { request: { response_format: { type: 'json' } } })).final.content)).toBe('not json');
  });

  it('makes no call when nothing is offered', async () => {
    const { final, called } = await turn('/call echo::back {}', { tools: [] });
    expect(called).toEqual([]);
    expect(textOf(final.content)).toContain('No function is offered');
  });

  it('explains a line that it cannot read', async () => {
    const { final, called } = await turn('/call echo::back {"a":}');
    expect(called).toEqual([]);
    expect(textOf(final.content)).toContain('arguments of `echo::back` are not JSON');
  });

  it('fails as it is told: retried by the router, with its wait', async () => {
    const { message } = await generate({ messages: [user('/error rate_limited 200 slow down')] });
    expect(message).toMatchObject({ stop_reason: 'error', error_kind: 'rate_limited', error_message: 'slow down (after 3 tries)' });
    expect(rig.pauses).toEqual([220, 220]);
    expect((await generate({ messages: [user('/say half\n/error transient')] })).message).toMatchObject({
      stop_reason: 'error',
      content: [{ text: 'half' }],
    });
    expect((await generate({ messages: [user('/error nonsense')] })).message).toMatchObject({ error_kind: 'permanent' });
  });

  it('stops at its length', async () => {
    expect((await turn('/length')).final.stop_reason).toBe('length');
  });

  it('goes slowly, and stops at once when it is cancelled', async () => {
    const channel = await rig.bus.createChannel();
    const chat = rig.call<{ stop_reason: string }>('router::chat', {
      model: 'demo',
      messages: [user('/slow 40\n/say one two three four five six')],
      request_id: 'r',
      writer_ref: channel.writerRef,
    });
    const frames: StreamFrame[] = [];
    while (!frames.some((frame) => frame.type === 'text_delta')) frames.push(...((await channel.reader.next()) as StreamFrame[]));
    await rig.call('router::abort', { request_id: 'r' });
    for (let batch = await channel.reader.next(); batch !== null; batch = await channel.reader.next())
      frames.push(...(batch as StreamFrame[]));
    expect((await chat).stop_reason).toBe('aborted');
    expect(frames[frames.length - 1]).toMatchObject({ type: 'done', message: { content: [{ type: 'text', text: 'one ' }] } });
  });

  it('explains itself', async () => {
    expect(textOf((await turn('/help')).final.content)).toContain('/call <function id> <json>');
  });
});

describe('the registration of the demo provider', () => {
  it('needs no key and costs nothing', async () => {
    expect(await rig.call('router::provider::list', {})).toMatchObject({ providers: [{ id: 'demo', configured: true, available: true }] });
    expect(await rig.call('provider::demo::refresh_models', {})).toEqual({ ok: true, count: 1 });
    expect(await rig.call('router::models::get', { provider: 'demo', id: 'demo' })).toMatchObject({
      model: { pricing: { input: 0, output: 0 } },
    });
  });
});
