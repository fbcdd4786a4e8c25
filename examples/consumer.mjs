// Sends a message, hears of the turn while it runs, prints the answer.
import { connect } from './connect.mjs';

const worker = connect('example-consumer');
const session_id = `s_example_${process.pid}`;
let shown = 0;

// A message is told of when it comes and whenever it has grown: print what is new of the model's answer.
const print = (message) => {
  if (message?.role !== 'assistant') return;
  const text = message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
  process.stdout.write(text.slice(shown));
  shown = Math.max(shown, text.length);
};
worker.registerFunction('example-consumer::message', async ({ message }) => {
  print(message);
  return null;
});

const ended = new Promise((resolve) => {
  worker.registerFunction('example-consumer::ended', async (event) => {
    resolve(event);
    return null;
  });
});

// Bind first, send then: nothing is missed.
for (const type of ['session::message-added', 'session::message-updated']) {
  worker.registerTrigger({ type, function_id: 'example-consumer::message', config: { session_id } });
}
worker.registerTrigger({ type: 'harness::turn-completed', function_id: 'example-consumer::ended', config: { session_id } });

const turn = await worker.trigger({
  function_id: 'harness::send',
  payload: {
    session_id,
    message: process.argv[2] ?? 'What can you do?',
    model: 'demo',
    provider: 'demo',
    options: { functions: { allow: ['engine::functions::list'], deny: [] } },
    // The same key again, after a crash of this program say, is the same message: it is not sent twice.
    idempotency_key: session_id,
  },
});
console.error(`session ${turn.session_id}, turn ${turn.turn_id}`);

const { status, reason } = await ended;
// Events come at least once and in any order: what is stored has the last word.
const { messages } = await worker.trigger({ function_id: 'session::messages', payload: { session_id } });
print(messages.at(-1)?.message);
console.error(`\n${status}${reason === undefined ? '' : `: ${reason}`}`);
await worker.shutdown();
process.exit(status === 'completed' ? 0 : 1);
