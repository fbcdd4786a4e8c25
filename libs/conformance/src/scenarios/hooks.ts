import { entryIds, textOf } from '#libs/contracts';
import { holds, same, shown } from '../expect.js';
import { asks, call, says } from '../generations.js';
import { type Scenario, TURN } from '../scenario.js';

/** Functions that are called in the path of a turn. */
export const hooks: readonly Scenario[] = [
  {
    id: 'pre-turn-veto',
    title: 'ends a turn that a pre-turn hook denies before any model is asked',
    needs: TURN,
    run: async (trial) => {
      const hook = await trial.hook('pre_turn', () => ({ decision: 'deny', reason: 'not today' }));
      const { session_id, turn_id } = await trial.send('May I?');
      const report = await trial.over(session_id);
      same([report.status, trial.model.requests.length], ['failed', 0], 'the status, and the number of generations');
      const [input] = hook.payloads;
      same(
        [input?.point, input?.session_id, input?.turn_id, input?.step, input?.depth],
        ['pre_turn', session_id, turn_id, 0, 0],
        'point, session_id, turn_id, step and depth of the input',
      );
    },
  },
  {
    id: 'pre-generate-veto',
    title: 'ends a turn whose generation a pre-generate hook denies',
    needs: TURN,
    run: async (trial) => {
      await trial.hook('pre_generate', () => ({ decision: 'deny', reason: 'the budget is spent' }));
      const { session_id } = await trial.send('May I?');
      const report = await trial.over(session_id);
      same([report.status, trial.model.requests.length], ['failed', 0], 'the status, and the number of generations');
    },
  },
  {
    id: 'pre-generate-rewrite',
    title: 'shows the model the system prompt and the messages that a pre-generate hook gives, and stores neither',
    needs: TURN,
    run: async (trial) => {
      trial.model.plays(says('Aye.'));
      const note = { role: 'user' as const, content: [{ type: 'text' as const, text: 'It is noon.' }], timestamp: 1 };
      const hook = await trial.hook('pre_generate', ({ generate }) => ({
        decision: 'continue',
        mutations: { system_prompt: `${generate?.system_prompt ?? ''}\nSpeak like a sailor.`, append_messages: [note] },
      }));
      const { session_id } = await trial.turn('Hello.');
      const [request] = trial.model.requests;
      holds(
        request?.system_prompt?.endsWith('Speak like a sailor.') === true,
        `the system prompt ends with ${shown(request?.system_prompt?.slice(-80))}`,
      );
      const texts = (request?.messages ?? []).map(({ content }) => textOf(content));
      same(texts, ['Hello.', 'It is noon.'], 'the messages of the request');
      const stored = (await trial.messages(session_id)).flatMap(({ message }) => (message === undefined ? [] : [textOf(message.content)]));
      same(stored, ['Hello.', 'Aye.'], 'the stored messages');
      same(hook.payloads[0]?.generate?.model, trial.model.model, 'the model that the hook is told');
    },
  },
  {
    id: 'post-generate',
    title: 'tells a post-generate hook of each message of the model',
    needs: TURN,
    run: async (trial) => {
      trial.model.plays(says('Heard.'));
      const hook = await trial.hook('post_generate', () => null);
      await trial.turn('Speak.');
      const message = hook.payloads[0]?.generated?.message;
      same([hook.payloads.length, textOf(message?.content ?? [])], [1, 'Heard.'], 'how often it was told, and of what');
    },
  },
  {
    id: 'pre-trigger-rewrite',
    title: 'calls with the arguments that pre-trigger hooks leave, in the order of their priority',
    needs: TURN,
    run: async (trial) => {
      const probe = await trial.function('probe');
      const add = (letter: string, priority: number): Promise<unknown> =>
        trial.hook(
          'pre_trigger',
          ({ call: made }) => {
            const { path = '' } = (made?.arguments ?? {}) as { path?: string };
            return { decision: 'continue', mutations: { arguments: { path: path + letter } } };
          },
          { priority },
        );
      await add('b', 2);
      await add('a', 1);
      trial.model.plays(asks(call('c1', probe.id, { path: '/' })), says('Done.'));
      await trial.turn('Call.');
      same(probe.payloads, [{ path: '/ab' }], 'what the function was called with');
    },
  },
  {
    id: 'pre-trigger-deny',
    title: 'does not make a call that a pre-trigger hook denies, and tells the model why',
    needs: TURN,
    run: async (trial) => {
      const probe = await trial.function('probe');
      await trial.hook('pre_trigger', () => ({ decision: 'deny', reason: 'that is off limits' }));
      trial.model.plays(asks(call('c1', probe.id)), says('Done.'));
      const { session_id } = await trial.turn('Call.');
      const [result] = await trial.results(session_id);
      same([probe.payloads.length, result?.is_error], [0, true], 'the number of calls, and is_error of the result');
      holds(textOf(result?.content ?? []).includes('that is off limits'), `the result is ${shown(result?.content)}`);
    },
  },
  {
    id: 'hook-bound-twice',
    title: 'asks a hook once that is bound twice to a point',
    needs: TURN,
    run: async (trial) => {
      const probe = await trial.function('probe');
      const hook = await trial.hook('pre_trigger', () => null);
      await trial.bind('harness::hook::pre-trigger', hook.id, { on_error: 'fail_open', functions: [probe.id] });
      trial.model.plays(asks(call('c1', probe.id)), says('Done.'));
      await trial.turn('Call.');
      same([hook.payloads.length, probe.payloads.length], [1, 1], 'how often the hook was asked, and the function called');
    },
  },
  {
    id: 'annotations',
    title: 'keeps what hooks note of a call with its result',
    needs: TURN,
    run: async (trial) => {
      const probe = await trial.function('probe');
      await trial.hook('pre_trigger', () => ({ decision: 'continue', annotations: { before: 1 } }));
      await trial.hook('post_trigger', () => ({ decision: 'continue', annotations: { after: 2 } }));
      trial.model.plays(asks(call('c1', probe.id)), says('Done.'));
      const { session_id, turn_id } = await trial.turn('Call.');
      const origin = (await trial.entry(session_id, entryIds.result(turn_id, 'c1')))?.origin;
      same([origin?.['before'], origin?.['after'], origin?.['turn_id']], [1, 2, turn_id], 'before, after and turn_id of the origin');
    },
  },
  {
    id: 'hook-fails-closed',
    title: 'denies a call whose pre-trigger hook fails, unless it is bound to fail open',
    needs: TURN,
    run: async (trial) => {
      const [closed, open] = [await trial.function('closed'), await trial.function('open')];
      const broken = (): never => {
        throw new Error('the hook is broken');
      };
      await trial.hook('pre_trigger', broken, { functions: [closed.id], on_error: 'fail_closed' });
      await trial.hook('pre_trigger', broken, { functions: [open.id], on_error: 'fail_open' });
      trial.model.plays(asks(call('c1', closed.id), call('c2', open.id)), says('Done.'));
      await trial.turn('Call both.');
      same([closed.payloads.length, open.payloads.length], [0, 1], 'how often the two were called');
    },
  },
  {
    id: 'post-trigger-rewrite',
    title: 'stores and shows the result that a post-trigger hook makes of a call',
    needs: TURN,
    run: async (trial) => {
      const probe = await trial.function('probe', () => ({ secret: 'swordfish' }));
      await trial.hook('post_trigger', () => ({
        decision: 'continue',
        mutations: { content: [{ type: 'text', text: 'masked' }], details: null },
      }));
      trial.model.plays(asks(call('c1', probe.id)), says('Done.'));
      const { session_id } = await trial.turn('Call.');
      const [result] = await trial.results(session_id);
      same(textOf(result?.content ?? []), 'masked', 'the stored result');
      holds(!JSON.stringify(await trial.messages(session_id)).includes('swordfish'), 'what the hook has masked is stored');
      holds(!JSON.stringify(trial.model.requests[1]).includes('swordfish'), 'what the hook has masked is shown to the model');
    },
  },
];
