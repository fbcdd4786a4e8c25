import { afterEach, describe, expect, it, vi } from 'vitest';
import { callsOf, HOOK_POINTS, type HookInput, hookTriggerType, type JsonValue } from '#libs/contracts';
import { defaultSettings } from '#libs/turn';
import { compilePolicy } from '../libs/turn/src/policy/policy.js';
import { agentCall, ScriptedModel } from './support/scripted-model.js';
import { asks, fails, says } from './support/scripts.js';
import { TurnRig } from './support/turn-rig.js';
import { facts } from './support/wire.js';

type Fields = { [name: string]: JsonValue };
type Shape = { required: string[]; optional: string[] };

let rig: TurnRig;
afterEach(() => rig.close());

/** What of an object is missing, or there although nobody knows it. */
function strange(value: object, { required, optional }: Shape): string[] {
  const has = Object.keys(value);
  return [
    ...required.filter((name) => !has.includes(name)).map((name) => `${name} is missing`),
    ...has.filter((name) => !required.includes(name) && !optional.includes(name)).map((name) => `${name} is not known`),
  ];
}
/** A pattern of ids as the facts write it, with its parts filled in. */
const idOf = (pattern: string, parts: { [name: string]: string | number } = {}): RegExp =>
  new RegExp(`^${pattern.replace(/<(\w+)>/g, (_all, name: string) => (name === 'hex' ? '[0-9a-f]{32}' : String(parts[name])))}$`);

const open = async (...script: ConstructorParameters<typeof ScriptedModel>): Promise<{ [type: string]: Fields[] }> => {
  rig = await TurnRig.open({ model: new ScriptedModel(...script), config: 'max_depth: 1\n', role: 'worker' });
  return Object.fromEntries(Object.keys(facts.events).map((type) => [type, rig.on(type, `watch::${type}`, () => null) as Fields[]]));
};

describe('turn events', () => {
  it('have the fields of the contract, with a parent for a child', async () => {
    const events = await open(asks(agentCall('c1', 'harness::spawn', { task: 'work' })), says('worked'), says('done'));
    const { turn_id, session_id } = await rig.turn('hello');
    for (const [type, shape] of Object.entries(facts.events)) {
      await expect.poll(() => events[type]).toHaveLength(2);
      for (const payload of events[type] ?? []) expect([type, strange(payload, shape)]).toEqual([type, []]);
      const child = events[type]?.find((payload) => payload['depth'] === 1);
      expect(strange(child?.['parent'] as Fields, { required: facts.parent, optional: [] })).toEqual([]);
      expect(child?.['parent']).toEqual({ session_id, turn_id, function_call_id: 'c1' });
    }
    const own = (type: string): Fields | undefined => events[type]?.find((payload) => payload['turn_id'] === turn_id);
    expect(own('harness::turn-started')).toMatchObject({ session_id, depth: 0, message_preview: 'hello' });
    expect(own('harness::turn-completed')).toMatchObject({ session_id, status: 'completed', depth: 0, terminal: true, result: 'done' });
    expect([session_id, turn_id]).toEqual([
      expect.stringMatching(idOf(facts.ids.session)) as unknown,
      expect.stringMatching(idOf(facts.ids.turn)) as unknown,
    ]);
  });

  it('of a turn that failed say why, and leave a result out that there is not', async () => {
    const events = await open(fails('the model is gone'));
    await rig.turn('hello');
    await expect.poll(() => events['harness::turn-completed']).toHaveLength(1);
    const [ended] = events['harness::turn-completed'] ?? [];
    expect(ended).toMatchObject({ status: 'failed', terminal: true });
    expect([typeof ended?.['result_error'], typeof ended?.['reason'], 'result' in (ended ?? {})]).toEqual(['string', 'string', false]);
  });
});

describe('hooks', () => {
  it('get the envelope and the one part of their point', async () => {
    await open(asks(agentCall('c1', 'probe::run', { a: 1 })), says('done'));
    rig.function('probe::run');
    const inputs = new Map<string, HookInput>();
    for (const point of HOOK_POINTS) {
      expect(hookTriggerType(point)).toBe(facts.hooks[point].type);
      rig.on(facts.hooks[point].type, `hook::${point}`, (input: HookInput) => void inputs.set(point, input));
    }
    await rig.turn('hello', { options: { functions: { allow: ['*'] }, metadata: { tenant: 'a' } } });
    for (const point of HOOK_POINTS) {
      const { part, fields } = facts.hooks[point];
      const input = inputs.get(point) ?? {};
      const { required, optional } = facts.hooks.envelope;
      expect([point, strange(input, { required: [...required, ...(part === undefined ? [] : [part])], optional })]).toEqual([point, []]);
      expect(input).toMatchObject({ point, step: expect.any(Number) as number, depth: 0, metadata: { tenant: 'a' } });
      if (part !== undefined)
        expect(strange((input as unknown as { [part: string]: Fields })[part] ?? {}, { required: fields ?? [], optional: [] })).toEqual([]);
    }
  });
});

describe('ids', () => {
  it('of entries and requests are those of the contract', async () => {
    await open(asks(agentCall('c1', 'probe::run'), agentCall('', 'probe::run')), says('[1]'), says('no number'), fails('over'));
    rig.function('probe::run');
    const asked = vi.spyOn(rig.runtime.bus, 'trigger');
    const output = { type: 'json' as const, schema: { type: 'object' } };
    const { session_id, turn_id: turn } = await rig.turn('hello', {
      idempotency_key: 'key-1',
      options: { functions: { allow: ['*'] }, output },
    });
    const { entries } = rig.disk(session_id);
    const derived = entries.flatMap(({ message }) => (message?.role === 'assistant' ? callsOf(message.content) : []))[1]?.id ?? '';
    expect(entries.map(({ id }) => id)).toEqual(
      [
        idOf(facts.entries.idempotent, { key: 'key-1' }),
        idOf(facts.entries.assistant, { turn, step: 0 }),
        idOf(facts.entries.result, { turn, call: 'c1' }),
        idOf(facts.entries.result, { turn, call: derived }),
        idOf(facts.entries.assistant, { turn, step: 1 }),
        idOf(facts.entries.nudge, { turn, n: 1 }),
        idOf(facts.entries.assistant, { turn, step: 2 }),
        idOf(facts.entries.nudge, { turn, n: 2 }),
        idOf(facts.entries.error, { turn }),
      ].map((pattern) => expect.stringMatching(pattern) as unknown),
    );
    const chats = asked.mock.calls.flatMap(([{ function_id, payload }]) => (function_id === 'router::chat' ? [payload as Fields] : []));
    expect(chats.map((chat) => chat['request_id'])).toEqual(
      [0, 1, 2, 3].map((step) => expect.stringMatching(idOf(facts.request_id, { turn, step })) as unknown),
    );
  });
});

describe('errors', () => {
  it('have the codes of the contract', async () => {
    await open(
      asks(agentCall('c1', 'harness::spawn', { task: 'deep' })),
      asks(agentCall('c1', 'harness::spawn', { task: 'deeper' })),
      says('a'),
      says('b'),
    );
    const codes = facts.errors;
    const refused = (request: object): Promise<unknown> => rig.call('harness::send', { model: 'm', ...request }).catch(String);
    expect(
      await refused({ message: { role: 'assistant', content: [], model: 'm', provider: 'p', stop_reason: 'end', timestamp: 1 } }),
    ).toContain(`${codes['a role that may not be sent']}: `);
    expect(await refused({ message: 7 })).toContain(`${codes['a request that does not meet its schema']}: message`);
    const { session_id } = await rig.turn('go');
    const child = (await rig.status(session_id))?.children[0]?.session_id ?? '';
    expect((await rig.results(child))[0]?.details).toMatchObject({ error: codes['a child too deep'] });
  });

  it('tell a model that it has had its children', async () => {
    const calls = Array.from({ length: facts.defaults.max_children + 1 }, (_, n) => agentCall(`c${n}`, 'harness::spawn', { task: 'work' }));
    const model = new ScriptedModel(asks(...calls));
    model.fallback = () => says('done');
    rig = await TurnRig.open({ model });
    const results = await rig.results((await rig.turn('go')).session_id);
    expect(results.filter(({ is_error }) => is_error).map(({ details }) => (details as { error?: string }).error)).toEqual([
      facts.errors['a child too many'],
    ]);
  });
});

describe('policy and defaults', () => {
  it('are those of the contract', async () => {
    await open();
    const everything = compilePolicy({ allow: ['*'], deny: [], expose: 'native' });
    for (const id of facts.never) expect([id, everything.refusal(id) !== null]).toEqual([id, true]);
    for (const id of facts.allowed) expect([id, everything.refusal(id)]).toEqual([id, null]);
    const { system_prompt_strategy, expose, ...settings } = facts.defaults;
    expect(defaultSettings).toMatchObject(settings);
    const { session_id } = await rig.turn('go', { options: { functions: { allow: ['x::*'] } } });
    expect(rig.disk(session_id).turn?.record.options).toMatchObject({ system_prompt_strategy, functions: { expose } });
  });
});
