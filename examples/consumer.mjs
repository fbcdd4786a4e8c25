// Sends a message, hears of the turn while it runs, prints the answer.
import { connect } from './connect.mjs';

const worker = connect('example-consumer');
const session_id = `s_example_${process.pid}`;
let shown = 0;

// The message grows while it streams: print what is new of it.
worker.registerFunction('example-consumer::update', async ({ message }) => {
  if (message.role !== 'assistant') return null;
  const text = message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
  process.stdout.write(text.slice(shown));
  shown = Math.max(shown, text.length);
  return null;
});

const ended = new Promise((resolve) => {
  worker.registerFunction('example-consumer::ended', async (event) => {
    resolve(event);
    return null;
  });
});

// Bind first, send then: nothing is missed.
worker.registerTrigger({ type: 'session::message-updated', function_id: 'example-consumer::update', config: { session_id } });
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
console.error(`\n${status}${reason === undefined ? '' : `: ${reason}`}`);
await worker.shutdown();
process.exit(status === 'completed' ? 0 : 1);
