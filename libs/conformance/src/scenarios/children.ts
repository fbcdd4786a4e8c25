import { type JsonObject, type ProviderStreamRequest, type SessionMeta, textOf } from '#libs/contracts';
import { holds, same, shown } from '../expect.js';
import { asks, call, type Generation, Held, says } from '../generations.js';
import { type Scenario, TURN } from '../scenario.js';

/** True for a request of the turn whose first message is `text`. */
const begins = ({ messages }: ProviderStreamRequest, text: string): boolean => textOf(messages[0]?.content ?? []) === text;

/** Turns that turns start. */
export const children: readonly Scenario[] = [
  {
    id: 'spawn',
    title: 'starts a child for a call of harness::spawn, waits for it, and answers the call with what it says',
    needs: [...TURN, 'session::get'],
    run: async (trial) => {
      trial.model.apart = (request) => (begins(request, 'Find the answer.') ? says('The answer is 42.') : null);
      trial.model.plays(asks(call('c1', 'harness::spawn', { task: 'Find the answer.' })), says('I have it.'));
      const { session_id, turn_id, report } = await trial.turn('Delegate.', { options: trial.allowing('harness::spawn') });
      const [child] = report.children;
      holds(child !== undefined && report.children.length === 1, `children are ${shown(report.children)}`);
      same(child.function_call_id, 'c1', 'function_call_id of the child');
      const [result] = await trial.results(session_id);
      same(result?.is_error, false, 'is_error of the result');
      holds(textOf(result?.content ?? []).includes('The answer is 42.'), `the result is ${shown(result?.content)}`);
      const status = await trial.status(child.session_id);
      same([status?.status, status?.depth], ['completed', 1], 'status and depth of the child');
      const found = await trial.call<{ meta: SessionMeta } | null>('session::get', { session_id: child.session_id });
      const { parent_session_id, parent_turn_id, function_call_id } = (found?.meta.metadata ?? {}) as JsonObject;
      same(
        [parent_session_id, parent_turn_id, function_call_id],
        [session_id, turn_id, 'c1'],
        'the link to its parent in the metadata of the child',
      );
    },
  },
  {
    id: 'spawn-waits',
    title: 'waits for a child without a generation of its own, and tells of it in the status',
    needs: TURN,
    run: async (trial) => {
      const stream = new Held('Thinking');
      trial.model.apart = (request) => (begins(request, 'Think.') ? stream.generation : null);
      trial.model.plays(asks(call('c1', 'harness::spawn', { task: 'Think.' })), says('Good.'));
      const { session_id } = await trial.send('Delegate.', { options: trial.allowing('harness::spawn') });
      const report = await trial.until(session_id, 'awaiting_functions');
      same(report.pending_function_calls, ['c1'], 'pending_function_calls');
      await trial.becomes('the generation of the child', () => stream.begun);
      stream.finish();
      same((await trial.over(session_id)).status, 'completed', 'the status');
    },
  },
  {
    id: 'spawn-tree',
    title: 'lets children have children, and hands what they say up the tree',
    needs: TURN,
    run: async (trial) => {
      const spawn = (task: string): Generation => asks(call('c1', 'harness::spawn', { task }));
      const last = ({ messages }: ProviderStreamRequest): string => textOf(messages.at(-1)?.content ?? []);
      const isAnswered = ({ messages }: ProviderStreamRequest): boolean => messages.at(-1)?.role === 'function_result';
      trial.model.apart = (request) => {
        if (begins(request, 'The leaf.')) return says('Found at the leaf.');
        return isAnswered(request) ? says(last(request)) : spawn(begins(request, 'The branch.') ? 'The leaf.' : 'The branch.');
      };
      const { session_id, report } = await trial.turn('The root.', { options: trial.allowing('harness::spawn') });
      const [branch] = report.children;
      holds(branch !== undefined, 'the status tells of no child');
      const [leaf] = (await trial.status(branch.session_id))?.children ?? [];
      holds(leaf !== undefined, 'the status of the child tells of no child');
      same((await trial.status(leaf.session_id))?.depth, 2, 'the depth of the child of the child');
      const answer = textOf((await trial.messages(session_id)).at(-1)?.message?.content ?? []);
      holds(answer.includes('Found at the leaf.'), `what is said at the root is ${shown(answer)}`);
    },
  },
  {
    id: 'child-policy',
    title: 'lets a child call nothing that its parent may not',
    needs: TURN,
    run: async (trial) => {
      const [allowed, forbidden] = [await trial.function('allowed'), await trial.function('forbidden')];
      let asked = false;
      trial.model.apart = (request) => {
        if (!begins(request, 'Try both.')) return null;
        if (asked) return says('Tried.');
        asked = true;
        return asks(call('k1', allowed.id), call('k2', forbidden.id));
      };
      const task = { task: 'Try both.', options: { functions: { allow: [allowed.id, forbidden.id] } } };
      trial.model.plays(asks(call('c1', 'harness::spawn', task)), says('Done.'));
      await trial.turn('Delegate.', { options: trial.allowing('harness::spawn', allowed.id) });
      same([allowed.payloads.length, forbidden.payloads.length], [1, 0], 'how often the two were called');
      const agent = (allowed.metadata[0] as JsonObject | undefined)?.['agent'] as JsonObject | undefined;
      same(agent?.['depth'], 1, 'depth in the metadata of the call');
    },
  },
  {
    id: 'stop-tree',
    title: 'stops the children of a turn with it',
    needs: TURN,
    run: async (trial) => {
      const stream = new Held('Thinking');
      trial.model.apart = (request) => (begins(request, 'Think.') ? stream.generation : null);
      trial.model.plays(asks(call('c1', 'harness::spawn', { task: 'Think.' })));
      const { session_id } = await trial.send('Delegate.', { options: trial.allowing('harness::spawn') });
      await trial.becomes('the generation of the child', () => stream.begun);
      const [child] = (await trial.until(session_id, 'awaiting_functions')).children;
      holds(child !== undefined, 'the status tells of no child');
      await trial.call('harness::stop', { session_id });
      await trial.becomes('the end of the stream of the child', () => stream.closed);
      same((await trial.over(session_id)).status, 'cancelled', 'the status');
      same((await trial.over(child.session_id)).status, 'cancelled', 'the status of the child');
    },
  },
];
