import { holds, same } from '../expect.js';
import type { Scenario } from '../scenario.js';
import type { Trial } from '../trial.js';

/** Checks that a call is refused with a code, and that the message names the field at fault. */
async function refused(trial: Trial, function_id: string, payload: object, code: string, field: string): Promise<void> {
  const refusal = await trial.refusal(function_id, payload);
  same(refusal.code, code, `the code of ${function_id} without a right ${field}`);
  holds(refusal.message.includes(field), `the message of ${function_id} does not name ${field}: ${refusal.message}`);
}

/** What a harness does not take, and what it says of what is not there. */
export const refusals: readonly Scenario[] = [
  {
    id: 'invalid-requests',
    title: 'refuses requests that do not meet their schema with harness/invalid_request, which names the field',
    run: async (trial) => {
      const { model } = trial.model;
      const invalid = 'harness/invalid_request';
      await refused(trial, 'harness::send', { message: 'x' }, invalid, 'model');
      await refused(trial, 'harness::send', { model }, invalid, 'message');
      await refused(trial, 'harness::send', { message: 'x', model, options: { functions: { allow: 'all' } } }, invalid, 'allow');
      await refused(trial, 'harness::status', {}, invalid, 'session_id');
      await refused(trial, 'harness::stop', { session_id: 7 }, invalid, 'session_id');
      await refused(trial, 'harness::function::resolve', { session_id: 's', turn_id: 't' }, invalid, 'function_call_id');
      await refused(trial, 'harness::spawn', {}, invalid, 'task');
    },
  },
  {
    id: 'refused-writes-nothing',
    title: 'leaves no session behind when it refuses a message',
    run: async (trial) => {
      const session_id = trial.session();
      await trial.refusal('harness::send', { session_id, message: 'x' });
      same(await trial.status(session_id), null, 'the status of the session');
      const role = await trial.refusal('harness::send', {
        session_id,
        model: trial.model.model,
        message: { role: 'assistant', content: [], model: 'm', provider: 'p', stop_reason: 'end', timestamp: 1 },
      });
      same(role.code, 'harness/invalid_message_role', 'the code for a message of the assistant');
      same(await trial.status(session_id), null, 'the status of the session');
    },
  },
  {
    id: 'unknown-sessions',
    title: 'knows no status of a session that is not there, and has nothing to stop or to resolve in it',
    run: async (trial) => {
      const session_id = trial.session();
      same(await trial.status(session_id), null, 'the status');
      same(await trial.call('harness::stop', { session_id }), { stopping: false }, 'the answer of harness::stop');
      const payload = { session_id, turn_id: 't_none', function_call_id: 'c_none' };
      same(await trial.call('harness::function::resolve', payload), { resolved: false, turn_resumed: false }, 'the answer of resolve');
    },
  },
];
