import { textOf } from '#libs/contracts';
import { holds, same, shown } from '../expect.js';
import { says } from '../generations.js';
import { type Scenario, TURN } from '../scenario.js';

/** Messages that come in, and turns that answer them. */
export const sending: readonly Scenario[] = [
  {
    id: 'plain-answer',
    title: 'answers a message with what the model says',
    needs: TURN,
    run: async (trial) => {
      trial.model.plays(says('An answer.'));
      const sent = await trial.send('A question.');
      same(sent.accepted, true, 'accepted');
      holds(/^t_[0-9a-f]{32}$/.test(sent.turn_id), `turn_id is ${shown(sent.turn_id)}, not t_ and 32 hex digits`);
      const report = await trial.over(sent.session_id);
      same(report.status, 'completed', 'the status');
      same(report.turn_count, 1, 'turn_count');
      const stored = (await trial.messages(sent.session_id)).flatMap(({ message }) =>
        message === undefined ? [] : [[message.role, textOf(message.content)]],
      );
      same(
        stored,
        [
          ['user', 'A question.'],
          ['assistant', 'An answer.'],
        ],
        'the stored conversation',
      );
    },
  },
];
