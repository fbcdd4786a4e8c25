import {
  type AgentMessage,
  entryIds,
  type MessageItem,
  type SendResponse,
  type SessionMeta,
  type TurnStepResult,
  textOf,
} from '#libs/contracts';
import { holds, same, shown } from '../expect.js';
import { Held, says } from '../generations.js';
import { type Scenario, TURN } from '../scenario.js';

/** What was said in a conversation, as pairs of role and text. */
const said = (messages: readonly MessageItem[]): [string, string][] =>
  messages.flatMap(({ message }): [string, string][] => (message === undefined ? [] : [[message.role, textOf(message.content)]]));

/** Texts of the user that a model was shown. */
const heard = (messages: readonly AgentMessage[]): string[] =>
  messages.flatMap(({ role, content }) => (role === 'user' ? [textOf(content)] : []));

/** Messages that come in, and turns that answer them. */
export const sending: readonly Scenario[] = [
  {
    id: 'plain-answer',
    title: 'answers a message with what the model says, under the ids of the contract',
    needs: TURN,
    run: async (trial) => {
      trial.model.plays(says('An answer.'));
      const sent = await trial.send('A question.');
      same(sent.accepted, true, 'accepted');
      holds(/^t_[0-9a-f]{32}$/.test(sent.turn_id), `turn_id is ${shown(sent.turn_id)}, not t_ and 32 hex digits`);
      const report = await trial.over(sent.session_id);
      same(report.status, 'completed', 'the status');
      same(report.turn_id, sent.turn_id, 'turn_id of the status');
      same([report.turn_count, report.depth, report.pending_function_calls], [1, 0, []], 'turn_count, depth and pending calls');
      const stored = await trial.messages(sent.session_id);
      same(
        said(stored),
        [
          ['user', 'A question.'],
          ['assistant', 'An answer.'],
        ],
        'the stored conversation',
      );
      same(stored.at(-1)?.entry_id, entryIds.assistant(sent.turn_id, 0), 'the id of the answer');
      same(stored.at(-1)?.origin?.['turn_id'], sent.turn_id, 'turn_id in the origin of the answer');
    },
  },
  {
    id: 'new-session',
    title: 'makes a session where none is named, with the title and metadata of the send that makes it',
    needs: [...TURN, 'session::get'],
    run: async (trial) => {
      trial.model.plays(says('Once.'), says('Twice.'));
      const { model, provider } = trial.model;
      const init = { title: 'Conformance', metadata: { conformance: true } };
      const first = await trial.call<SendResponse>('harness::send', { message: 'One.', model, provider, session: init });
      trial.owns(first.session_id);
      holds(/^s_[0-9a-f]{32}$/.test(first.session_id), `session_id is ${shown(first.session_id)}, not s_ and 32 hex digits`);
      await trial.over(first.session_id);
      await trial.turn('Two.', { session_id: first.session_id, session: { title: 'Another', metadata: { conformance: false } } });
      const found = await trial.call<{ meta: SessionMeta } | null>('session::get', { session_id: first.session_id });
      same([found?.meta.title, found?.meta.metadata], [init.title, init.metadata], 'title and metadata of the session');
    },
  },
  {
    id: 'conversation',
    title: 'shows the model the conversation so far',
    needs: TURN,
    run: async (trial) => {
      trial.model.plays(says('Hello.'), says('Ada.'));
      const { session_id } = await trial.turn('I am Ada.');
      await trial.turn('Who am I?', { session_id });
      const shownTo = trial.model.requests[1]?.messages ?? [];
      same(
        shownTo.map(({ role, content }) => [role, textOf(content)]),
        [
          ['user', 'I am Ada.'],
          ['assistant', 'Hello.'],
          ['user', 'Who am I?'],
        ],
        'what the second request shows',
      );
    },
  },
  {
    id: 'idempotency-key',
    title: 'takes a message with the same idempotency key once, however often and at once it comes',
    needs: TURN,
    run: async (trial) => {
      trial.model.plays(says('Once.'));
      const session_id = trial.session();
      const idempotency_key = `key-${session_id}`;
      const answers = await Promise.all(Array.from({ length: 4 }, () => trial.send('Only once.', { session_id, idempotency_key })));
      await trial.over(session_id);
      answers.push(await trial.send('Only once.', { session_id, idempotency_key }));
      same(new Set(answers.map(({ turn_id }) => turn_id)).size, 1, 'the number of turns that are answered');
      same(
        answers.filter(({ deduplicated }) => deduplicated === true).length,
        answers.length - 1,
        'the number of answers that say deduplicated',
      );
      const stored = (await trial.messages(session_id)).filter(({ message }) => message?.role === 'user');
      same(
        stored.map(({ entry_id }) => entry_id),
        [entryIds.idempotent(idempotency_key)],
        'the entries of the message',
      );
      same(trial.model.requests.length, 1, 'the number of generations');
    },
  },
  {
    id: 'merge',
    title: 'takes messages into the turn that runs, in their order, and lets the model see them before it ends',
    needs: TURN,
    run: async (trial) => {
      const first = new Held('Let me think');
      trial.model.plays(first.generation, says('Now I know both.'));
      const begun = await trial.send('One.');
      await trial.becomes('the generation', () => first.begun);
      const merged = [
        await trial.send('Two.', { session_id: begun.session_id }),
        await trial.send('Three.', { session_id: begun.session_id }),
      ];
      for (const answer of merged)
        same([answer.merged, answer.turn_id], [true, begun.turn_id], 'merged and turn_id of a message that is added');
      first.finish();
      const report = await trial.over(begun.session_id);
      same([report.status, report.turn_id], ['completed', begun.turn_id], 'status and turn_id at the end');
      same(trial.model.requests.length, 2, 'the number of generations');
      same(heard(trial.model.requests[1]?.messages ?? []), ['One.', 'Two.', 'Three.'], 'what the second request shows of the user');
      const stored = said(await trial.messages(begun.session_id)).filter(([role]) => role === 'user');
      same(
        stored.map(([, text]) => text),
        ['One.', 'Two.', 'Three.'],
        'the stored messages',
      );
    },
  },
  {
    id: 'next-turn',
    title: 'begins a turn of its own for a message that comes after the end of the last one',
    needs: TURN,
    run: async (trial) => {
      trial.model.plays(says('One.'), says('Two.'));
      const first = await trial.turn('First.');
      const second = await trial.turn('Second.', { session_id: first.session_id });
      holds(second.turn_id !== first.turn_id, 'the second message is answered with the turn of the first');
      holds(second.merged !== true, 'the second message is said to be merged');
    },
  },
  {
    id: 'stale-step',
    title: 'skips a step that comes once more, and leaves a turn as it ended',
    needs: TURN,
    run: async (trial) => {
      trial.model.plays(says('Once.'));
      const { session_id, turn_id } = await trial.turn('Only once.');
      const before = [await trial.status(session_id), await trial.messages(session_id)];
      const answer = await trial.call<TurnStepResult>('harness::turn', { session_id, turn_id, step: 0 });
      same([answer.skipped, answer.status], [true, 'completed'], 'skipped and status of the answer');
      same([await trial.status(session_id), await trial.messages(session_id)], before, 'the status and the conversation');
      same(trial.model.requests.length, 1, 'the number of generations');
    },
  },
  {
    id: 'failed-generation',
    title: 'ends a turn as failed when the model cannot be asked, with an entry that says why',
    needs: TURN,
    run: async (trial) => {
      trial.model.plays(async (_request, stream) => await stream.fail('the scripted model fails'));
      const { session_id, turn_id } = await trial.send('Fail.');
      const report = await trial.over(session_id);
      same(report.status, 'failed', 'the status');
      holds((await trial.entry(session_id, entryIds.error(turn_id))) !== null, `there is no entry ${entryIds.error(turn_id)}`);
    },
  },
];
