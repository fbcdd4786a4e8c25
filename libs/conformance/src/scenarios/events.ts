import type { JsonValue, TurnCompletedEvent, TurnStartedEvent } from '#libs/contracts';
import { holds, same, shown } from '../expect.js';
import { asks, call, says } from '../generations.js';
import { type Scenario, TURN } from '../scenario.js';

/** Events come at least once: what counts is which there are. */
const distinct = <T>(events: readonly T[]): T[] => [...new Map(events.map((event) => [JSON.stringify(event), event])).values()];

/** What is told of turns. */
export const events: readonly Scenario[] = [
  {
    id: 'turn-events',
    title: 'tells of the start and the end of a turn to those that are bound to its session',
    needs: TURN,
    run: async (trial) => {
      const [session_id, other] = [trial.session(), trial.session()];
      const started = await trial.events<TurnStartedEvent>('harness::turn-started', { session_id });
      const completed = await trial.events<TurnCompletedEvent>('harness::turn-completed', { session_id });
      trial.model.plays(says('Not told of.'), says('Told of.'));
      await trial.turn('Elsewhere.', { session_id: other });
      const { turn_id } = await trial.turn('Here.', { session_id });
      await trial.becomes('harness::turn-started', () => started.payloads.length > 0);
      await trial.becomes('harness::turn-completed', () => completed.payloads.length > 0);
      const [begun, ...more] = distinct(started.payloads);
      const [ended, ...others] = distinct(completed.payloads);
      same([more, others], [[], []], 'further events');
      same([begun?.session_id, begun?.turn_id, begun?.depth], [session_id, turn_id, 0], 'session_id, turn_id and depth of the start');
      same(
        [ended?.session_id, ended?.turn_id, ended?.status, ended?.depth, ended?.terminal],
        [session_id, turn_id, 'completed', 0, true],
        'session_id, turn_id, status, depth and terminal of the end',
      );
      const times: JsonValue[] = [begun?.timestamp ?? null, ended?.timestamp ?? null];
      holds(
        times.every((time) => Number.isInteger(time)),
        `the timestamps are ${shown(times)}`,
      );
    },
  },
  {
    id: 'child-events',
    title: 'tells those that are bound to a parent of the end of its children, with the call that started them',
    needs: TURN,
    run: async (trial) => {
      const session_id = trial.session();
      const completed = await trial.events<TurnCompletedEvent>('harness::turn-completed', { parent_session_id: session_id });
      trial.model.plays(asks(call('c1', 'harness::spawn', { task: 'A task.' })), says('Child.'), says('Parent.'));
      const { turn_id } = await trial.turn('Delegate.', { session_id, options: trial.allowing('harness::spawn') });
      await trial.becomes('harness::turn-completed of the child', () => completed.payloads.length > 0);
      const [ended, ...more] = distinct(completed.payloads);
      same(more, [], 'further events');
      same(ended?.parent, { session_id, turn_id, function_call_id: 'c1' }, 'parent of the event');
      same(ended?.depth, 1, 'depth of the event');
    },
  },
];
