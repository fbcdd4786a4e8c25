import { textOf } from '#libs/contracts';
import { holds, same, shown } from '../expect.js';
import { asks, call, Held, says } from '../generations.js';
import { type Scenario, TURN } from '../scenario.js';

/** Turns that are ended from outside. */
export const stopping: readonly Scenario[] = [
  {
    id: 'stop-stream',
    title: 'closes the stream of a turn that is stopped, keeps what was said, and ends it as cancelled',
    needs: TURN,
    run: async (trial) => {
      const stream = new Held('Half of an');
      trial.model.plays(stream.generation);
      const { session_id } = await trial.send('Speak.');
      await trial.becomes('the generation', () => stream.begun);
      same(await trial.call('harness::stop', { session_id }), { stopping: true }, 'the answer of harness::stop');
      await trial.becomes('the end of the stream', () => stream.closed);
      same((await trial.over(session_id)).status, 'cancelled', 'the status');
      same(await trial.call('harness::stop', { session_id }), { stopping: false }, 'the answer of a second stop');
      const texts = (await trial.messages(session_id)).flatMap(({ message }) =>
        message?.role === 'assistant' ? [textOf(message.content)] : [],
      );
      holds(texts.length <= 1 && 'Half of an'.startsWith(texts[0] ?? ''), `the assistant is stored as ${shown(texts)}`);
    },
  },
  {
    id: 'stop-other-turn',
    title: 'leaves a turn alone when another one is named',
    needs: TURN,
    run: async (trial) => {
      const stream = new Held('Still ');
      trial.model.plays(stream.generation);
      const { session_id } = await trial.send('Speak.');
      await trial.becomes('the generation', () => stream.begun);
      same(await trial.call('harness::stop', { session_id, turn_id: 't_another' }), { stopping: false }, 'the answer of harness::stop');
      stream.finish({ type: 'text', text: 'here.' });
      same((await trial.over(session_id)).status, 'completed', 'the status');
    },
  },
  {
    id: 'stop-parked',
    title: 'ends a turn that waits for a call as cancelled, and every call of it has a result',
    needs: TURN,
    run: async (trial) => {
      const probe = await trial.function('probe');
      await trial.hook('pre_trigger', () => ({ decision: 'hold' }));
      trial.model.plays(asks(call('c1', probe.id), call('c2', probe.id)));
      const { session_id, turn_id } = await trial.send('Call.');
      await trial.until(session_id, 'awaiting_functions');
      same(await trial.call('harness::stop', { session_id }), { stopping: true }, 'the answer of harness::stop');
      same((await trial.over(session_id)).status, 'cancelled', 'the status');
      const results = await trial.results(session_id);
      same(results.map(({ function_call_id }) => function_call_id).sort(), ['c1', 'c2'], 'the calls that have a result');
      const late = { session_id, turn_id, function_call_id: 'c1', action: 'execute' };
      same(await trial.call('harness::function::resolve', late), { resolved: false, turn_resumed: false }, 'the answer of a late resolve');
      same(probe.payloads, [], 'the calls of the function');
    },
  },
  {
    id: 'stop-then-send',
    title: 'answers the next message after a stop, with a conversation that is in order',
    needs: TURN,
    run: async (trial) => {
      const probe = await trial.function('probe');
      await trial.hook('pre_trigger', () => ({ decision: 'hold' }));
      trial.model.plays(asks(call('c1', probe.id)), says('Here again.'));
      const { session_id } = await trial.send('Call.');
      await trial.until(session_id, 'awaiting_functions');
      await trial.call('harness::stop', { session_id });
      await trial.over(session_id);
      await trial.turn('Are you there?', { session_id });
      const shownTo = trial.model.requests[1]?.messages ?? [];
      const texts = shownTo.flatMap(({ role, content }) => (role === 'user' ? [textOf(content)] : []));
      same(texts, ['Call.', 'Are you there?'], 'what the request after the stop shows of the user');
      const asked = shownTo.findIndex(({ role, content }) => role === 'assistant' && content.some(({ type }) => type === 'function_call'));
      const next = shownTo[asked + 1];
      holds(
        asked === -1 || (next?.role === 'function_result' && next.function_call_id === 'c1'),
        `after the call of the stopped turn the request shows ${shown(next)}`,
      );
    },
  },
];
