// Is asked before every call of a shell command.
import { connect, leaveOnSignal } from './connect.mjs';

const worker = connect('example-hook');

worker.registerFunction('example-hook::guard', async ({ session_id, turn_id, call }) => {
  const command = String(call.arguments?.command ?? '');
  if (command === 'rm') return { decision: 'deny', reason: 'nothing is removed here' };
  if (command === 'echo') {
    const args = (call.arguments.args ?? []).map((word) => word.replaceAll('secret', '***'));
    return { decision: 'continue', mutations: { arguments: { ...call.arguments, args } } };
  }
  if (command === 'date') return { decision: 'continue' };
  // A held call waits, over restarts too, until somebody resolves it.
  console.error(`held ${call.id} in ${session_id}`);
  process.stdout.write(`${JSON.stringify({ session_id, turn_id, function_call_id: call.id })}\n`);
  return { decision: 'hold', pending_timeout_ms: 60_000 };
});

// Lets a held call go on: what a person's yes does.
worker.registerFunction('example-hook::release', async (held) =>
  worker.trigger({ function_id: 'harness::function::resolve', payload: { ...held, action: 'execute' } }),
);

worker.registerTrigger({
  type: 'harness::hook::pre-trigger',
  function_id: 'example-hook::guard',
  // fail_closed is the default of this point: a guard that is away or broken denies.
  config: { functions: ['shell::*'], timeout_ms: 2_000, on_error: 'fail_closed' },
});

leaveOnSignal(worker);
console.error('shell calls are guarded');
