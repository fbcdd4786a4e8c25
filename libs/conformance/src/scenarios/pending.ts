import { type FunctionResolveResponse, textOf } from '#libs/contracts';
import { holds, same, shown } from '../expect.js';
import { asks, call, says } from '../generations.js';
import { type Scenario, TURN } from '../scenario.js';
import type { Heard, Trial } from '../trial.js';

interface Parked {
  session_id: string;
  turn_id: string;
  function_call_id: string;
  probe: Heard;
}

/** A turn with one call that a hook holds, and an answer to come. */
async function parked(trial: Trial, pending_timeout_ms?: number): Promise<Parked> {
  const probe = await trial.function('probe', () => ({ called: true }));
  await trial.hook('pre_trigger', () => ({
    decision: 'hold',
    mutations: { arguments: { stamped: true } },
    ...(pending_timeout_ms === undefined ? {} : { pending_timeout_ms }),
  }));
  trial.model.plays(asks(call('c1', probe.id, { raw: true })), says('Done.'));
  const { session_id, turn_id } = await trial.send('Call.');
  const report = await trial.until(session_id, 'awaiting_functions');
  same(report.pending_function_calls, ['c1'], 'pending_function_calls');
  same(probe.payloads, [], 'the calls of a function that is held');
  return { session_id, turn_id, function_call_id: 'c1', probe };
}

const resolve = (trial: Trial, { session_id, turn_id, function_call_id }: Parked, more: object): Promise<FunctionResolveResponse> =>
  trial.call('harness::function::resolve', { session_id, turn_id, function_call_id, ...more });

/** Calls that wait for somebody. */
export const pending: readonly Scenario[] = [
  {
    id: 'hold-execute',
    title: 'holds a call for a hook, and makes it once it is released, with the arguments that the hook left',
    needs: TURN,
    run: async (trial) => {
      const turn = await parked(trial);
      same(await resolve(trial, turn, { action: 'execute' }), { resolved: true, turn_resumed: true }, 'the answer of resolve');
      same((await trial.over(turn.session_id)).status, 'completed', 'the status');
      same(turn.probe.payloads, [{ stamped: true }], 'what the function was called with');
      same((await trial.results(turn.session_id))[0]?.is_error, false, 'is_error of the result');
    },
  },
  {
    id: 'hold-deliver',
    title: 'takes the result of a held call from whoever delivers it, and does not make the call',
    needs: TURN,
    run: async (trial) => {
      const turn = await parked(trial);
      const content = [{ type: 'text', text: 'delivered' }];
      same(await resolve(trial, turn, { content }), { resolved: true, turn_resumed: true }, 'the answer of resolve');
      same((await trial.over(turn.session_id)).status, 'completed', 'the status');
      same(turn.probe.payloads, [], 'the calls of the function');
      same(textOf((await trial.results(turn.session_id))[0]?.content ?? []), 'delivered', 'the stored result');
    },
  },
  {
    id: 'resolved-once',
    title: 'settles a call once, whoever comes first',
    needs: TURN,
    run: async (trial) => {
      const turn = await parked(trial);
      const answers = await Promise.all(
        Array.from({ length: 5 }, (_, n) =>
          resolve(trial, turn, n % 2 === 0 ? { action: 'execute' } : { content: [{ type: 'text', text: `delivered ${n}` }] }),
        ),
      );
      await trial.over(turn.session_id);
      same(answers.filter(({ resolved }) => resolved).length, 1, 'how many of five were taken');
      same((await trial.results(turn.session_id)).length, 1, 'the number of results');
      holds(turn.probe.payloads.length <= 1, `the function was called ${turn.probe.payloads.length} times`);
      same((await resolve(trial, turn, { action: 'execute' })).resolved, false, 'resolved of one that comes later');
    },
  },
  {
    id: 'sweep',
    title: 'answers a pending call whose time is over with an error that says so, and goes on',
    needs: TURN,
    run: async (trial) => {
      const turn = await parked(trial, 1);
      await trial.becomes('the end of the waiting', async () => {
        await trial.call('harness::sweep-pending', {});
        return (await trial.status(turn.session_id))?.status !== 'awaiting_functions';
      });
      same((await trial.over(turn.session_id)).status, 'completed', 'the status');
      const [result] = await trial.results(turn.session_id);
      same([result?.is_error, turn.probe.payloads.length], [true, 0], 'is_error of the result, and the number of calls');
      holds(textOf(result?.content ?? []).includes('pending call timed out'), `the result is ${shown(result?.content)}`);
      same((await resolve(trial, turn, { action: 'execute' })).resolved, false, 'resolved of one that comes too late');
    },
  },
  {
    id: 'merge-while-waiting',
    title: 'takes a message into a turn that waits for a call',
    needs: TURN,
    run: async (trial) => {
      const turn = await parked(trial);
      const sent = await trial.send('By the way.', { session_id: turn.session_id });
      same([sent.merged, sent.turn_id], [true, turn.turn_id], 'merged and turn_id');
      same((await trial.status(turn.session_id))?.status, 'awaiting_functions', 'the status');
      await resolve(trial, turn, { action: 'execute' });
      same((await trial.over(turn.session_id)).status, 'completed', 'the status');
      const texts = (trial.model.requests[1]?.messages ?? []).flatMap(({ role, content }) => (role === 'user' ? [textOf(content)] : []));
      same(texts, ['Call.', 'By the way.'], 'what the second request shows of the user');
    },
  },
];
