import { entryIds, type FunctionResultMessage, type JsonObject, type JsonValue, type TriggerResult, textOf } from '#libs/contracts';
import { holds, same, shown } from '../expect.js';
import { asks, call, Held, says } from '../generations.js';
import { type Scenario, TURN } from '../scenario.js';
import type { Trial } from '../trial.js';

/** What metadata says of the agent that a call is made for. */
const agentOf = (metadata: JsonValue | undefined): JsonValue | undefined => (metadata as JsonObject | undefined)?.['agent'];

/** The only result of a session. */
async function onlyResult(trial: Trial, session_id: string): Promise<FunctionResultMessage> {
  const results = await trial.results(session_id);
  const [result] = results;
  holds(result !== undefined && results.length === 1, `there are ${results.length} results instead of one`);
  return result;
}

/** Plays one call and then an answer, and gives the result of the call. */
async function resultOf(trial: Trial, fn: string, payload: JsonObject, allow: readonly string[] | null): Promise<FunctionResultMessage> {
  trial.model.plays(asks(call('c1', fn, payload)), says('Done.'));
  const options = allow === null ? null : trial.allowing(...allow);
  const { session_id } = await trial.turn(`Call ${fn}.`, { options });
  return await onlyResult(trial, session_id);
}

/** Functions that no model may reach, each with what would be a call of it; `<session>` is the session of the turn. */
const NEVER: readonly [string, JsonObject][] = [
  ['harness::send', { session_id: '<other>', message: 'x', model: 'm' }],
  ['harness::turn', { session_id: '<session>', turn_id: 't', step: 0 }],
  ['harness::stop', { session_id: '<session>' }],
  ['harness::function::trigger', { session_id: '<session>', call: { id: 'c', function_id: 'f', arguments: {} } }],
  ['harness::function::resolve', { session_id: '<session>', turn_id: 't', function_call_id: 'c' }],
  ['harness::sweep-pending', {}],
  ['harness::on-config-change', {}],
  ['session::append', { session_id: '<session>', custom: { custom_type: 'forged' } }],
  ['session::set-status', { session_id: '<session>', status: 'error' }],
  ['session::delete', { session_id: '<session>' }],
  ['router::chat', { model: 'm', messages: [] }],
  ['router::provider::register', { id: 'forged' }],
  ['configuration::get', { id: 'harness' }],
  ['approval::resolve', { session_id: '<session>', function_call_id: 'c', decision: 'allow' }],
  ['engine::channels::create', {}],
];

/** Functions that a model calls. */
export const calls: readonly Scenario[] = [
  {
    id: 'tool-turn',
    title: 'calls a function for the model, once, and shows the model its result',
    needs: TURN,
    run: async (trial) => {
      const add = await trial.function('add', ({ a, b }: { a: number; b: number }) => ({ sum: a + b }));
      trial.model.plays(asks(call('c1', add.id, { a: 2, b: 40 })), says('It is 42.'));
      const { session_id, turn_id, report } = await trial.turn('Add.');
      same(add.payloads, [{ a: 2, b: 40 }], 'what the function was called with');
      const result = await onlyResult(trial, session_id);
      same(
        [result.function_call_id, result.function_id, result.is_error],
        ['c1', add.id, false],
        'call id, function id and is_error of the result',
      );
      holds(textOf(result.content).includes('42'), `the result is ${shown(result.content)}`);
      holds(
        (await trial.entry(session_id, entryIds.result(turn_id, 'c1'))) !== null,
        `there is no entry ${entryIds.result(turn_id, 'c1')}`,
      );
      const last = trial.model.requests[1]?.messages.at(-1);
      same(last?.role === 'function_result' ? last.function_call_id : last?.role, 'c1', 'what the second request ends with');
      same(report.turn_count, 2, 'turn_count');
    },
  },
  {
    id: 'provenance',
    title: 'says in the metadata of each call for whom it is made',
    needs: TURN,
    run: async (trial) => {
      const probe = await trial.function('probe');
      trial.model.plays(asks(call('c1', probe.id)), says('Done.'));
      const { session_id, turn_id } = await trial.turn('Call.');
      same(agentOf(probe.metadata[0]), { session_id, turn_id, depth: 0 }, 'metadata.agent of the call');
    },
  },
  {
    id: 'native-exposure',
    title: 'offers each allowed function by itself, with its own schema, when told to expose them natively',
    needs: TURN,
    run: async (trial) => {
      const probe = await trial.function('probe');
      const other = await trial.function('other');
      trial.model.plays(asks({ type: 'function_call', id: 'c1', function_id: probe.id, arguments: { n: 1 } }), says('Done.'));
      await trial.turn('Call.', { options: { functions: { allow: [probe.id], expose: 'native' } } });
      const names = (trial.model.requests[0]?.tools ?? []).map(({ name }) => name);
      same(names, [probe.id], 'the names of the offered functions');
      same([probe.payloads, other.payloads], [[{ n: 1 }], []], 'what the functions were called with');
    },
  },
  {
    id: 'deny-by-default',
    title: 'calls nothing for a message that allows nothing',
    needs: TURN,
    run: async (trial) => {
      const probe = await trial.function('probe');
      const result = await resultOf(trial, probe.id, {}, null);
      same([probe.payloads.length, result.is_error], [0, true], 'the number of calls, and is_error of the result');
    },
  },
  {
    id: 'policy',
    title: 'calls only what is allowed and not denied',
    needs: TURN,
    run: async (trial) => {
      const [yes, no, outside] = [await trial.function('yes'), await trial.function('no'), await trial.function('outside')];
      trial.model.plays(asks(call('c1', yes.id), call('c2', no.id), call('c3', outside.id)), says('Done.'));
      const { session_id } = await trial.turn('Call all.', { options: { functions: { allow: [yes.id, no.id], deny: [no.id] } } });
      same(
        [yes, no, outside].map(({ payloads }) => payloads.length),
        [1, 0, 0],
        'how often the three were called',
      );
      same(
        (await trial.results(session_id)).map(({ is_error }) => is_error),
        [false, true, true],
        'is_error of the three results',
      );
    },
  },
  {
    id: 'never-for-a-model',
    title: 'keeps models away from what would let them act beside their turn, whatever is allowed',
    needs: TURN,
    run: async (trial) => {
      const [session_id, other] = [trial.session(), trial.session()];
      const fill = (payload: JsonObject): JsonObject =>
        JSON.parse(JSON.stringify(payload).replaceAll('<session>', session_id).replaceAll('<other>', other)) as JsonObject;
      trial.model.plays(asks(...NEVER.map(([fn, payload], index) => call(`c${index}`, fn, fill(payload)))), says('Done.'));
      const { report } = await trial.turn('Reach for it.', { session_id, options: trial.allowing('*') });
      same(report.status, 'completed', 'the status');
      const results = await trial.results(session_id);
      const passed = NEVER.filter((_, index) => results.find((result) => result.function_call_id === `c${index}`)?.is_error !== true);
      holds(passed.length === 0, `a model reaches ${passed.map(([fn]) => fn).join(', ')}`);
      same(await trial.status(other), null, 'the status of a session that only a model would have made');
    },
  },
  {
    id: 'unknown-function',
    title: 'answers a call of a function that is not there with an error, and goes on',
    needs: TURN,
    run: async (trial) => {
      const result = await resultOf(trial, 'conformance::no-such-function', {}, ['*']);
      same(result.is_error, true, 'is_error of the result');
      same(result.function_id, 'conformance::no-such-function', 'function_id of the result');
    },
  },
  {
    id: 'failing-function',
    title: 'answers a call whose function fails with its error, without calling it again',
    needs: TURN,
    run: async (trial) => {
      const failing = await trial.function('failing', () => {
        throw new Error('conformance/broken: the function is broken');
      });
      const result = await resultOf(trial, failing.id, {}, [failing.id]);
      same([failing.payloads.length, result.is_error], [1, true], 'the number of calls, and is_error of the result');
      holds(textOf(result.content).includes('the function is broken'), `the result does not say what went wrong: ${shown(result.content)}`);
    },
  },
  {
    id: 'results-of-all-calls',
    title: 'gives every call of a message its own result before the next generation, in the order of the calls',
    needs: TURN,
    run: async (trial) => {
      const probe = await trial.function('probe', ({ n }: { n: number }) => ({ n }));
      trial.model.plays(asks(...[1, 2, 3].map((n) => call(`c${n}`, probe.id, { n }))), says('Done.'));
      await trial.turn('Call three times.');
      same(probe.payloads, [{ n: 1 }, { n: 2 }, { n: 3 }], 'what the function was called with');
      const results = (trial.model.requests[1]?.messages ?? []).flatMap((message) =>
        message.role === 'function_result' ? [message.function_call_id] : [],
      );
      same(results, ['c1', 'c2', 'c3'], 'the results that the second request shows');
    },
  },
  {
    id: 'function-trigger',
    title: 'runs a call for a live turn under the policy of that turn, and none without one',
    needs: TURN,
    run: async (trial) => {
      const [allowed, outside] = [await trial.function('allowed', () => ({ ok: 'yes' })), await trial.function('outside')];
      const stream = new Held('Thinking');
      trial.model.plays(stream.generation);
      const { session_id } = await trial.send('Think.', { options: trial.allowing(allowed.id) });
      await trial.becomes('the generation', () => stream.begun);
      const run = (function_id: string): Promise<TriggerResult> =>
        trial.call('harness::function::trigger', { session_id, call: { id: 'x1', function_id, arguments: { n: 1 } } });
      const result = await run(allowed.id);
      same([result.function_call_id, result.function_id, result.is_error], ['x1', allowed.id, false], 'call id, function id and is_error');
      same((await run(outside.id)).is_error, true, 'is_error of a call outside of the policy');
      stream.finish();
      await trial.over(session_id);
      same((await run(allowed.id)).is_error, true, 'is_error of a call after the end of the turn');
      same([allowed.payloads, outside.payloads], [[{ n: 1 }], []], 'what the functions were called with');
    },
  },
  {
    id: 'max-turns',
    title: 'ends a turn as completed at its limit of generations, with all calls answered',
    needs: TURN,
    run: async (trial) => {
      const probe = await trial.function('probe');
      for (let n = 0; n < 4; n += 1) trial.model.plays(asks(call(`c${n}`, probe.id)));
      const { session_id, report } = await trial.turn('Never stop.', { options: { ...trial.allowing(probe.id), max_turns: 2 } });
      same(
        [report.turn_count, report.max_turns, trial.model.requests.length],
        [2, 2, 2],
        'turn_count, max_turns and the number of generations',
      );
      const asked = (await trial.messages(session_id)).flatMap(({ message }) =>
        message?.role === 'assistant' ? message.content.flatMap((block) => (block.type === 'function_call' ? [block.id] : [])) : [],
      );
      const answered = (await trial.results(session_id)).map(({ function_call_id }) => function_call_id);
      same(answered.sort(), asked.sort(), 'the calls that have a result');
    },
  },
];
