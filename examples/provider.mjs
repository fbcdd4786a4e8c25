// A model, as harness sees one: a catalog entry, and a function that streams frames over a channel.
import { connect, leaveOnSignal } from './connect.mjs';

const worker = connect('example-provider');
const model = 'parrot-1';

const answer = (text, stop_reason) => ({
  role: 'assistant',
  content: text === '' ? [] : [{ type: 'text', text }],
  stop_reason,
  model,
  provider: 'parrot',
  timestamp: Date.now(),
});

const textOf = ({ content }) => (typeof content === 'string' ? content : content.map((block) => block.text ?? '').join(''));

worker.registerFunction('provider::parrot::stream', async ({ writer_ref: channel, messages }) => {
  // The SDK has turned the reference into the write end of the channel.
  const said = textOf(messages.filter(({ role }) => role === 'user').at(-1));
  const words = `You said: ${said}`.split(/(?<= )/);
  let cancelled = false;
  channel.stream.on('close', () => (cancelled = true));
  const send = (frame) => channel.sendMessage(JSON.stringify(frame));

  send({ type: 'start', partial: answer('', 'end') });
  send({ type: 'text_start', partial: answer('', 'end') });
  let text = '';
  for (const delta of words) {
    if (cancelled) return { ok: false };
    text += delta;
    send({ type: 'text_delta', delta, partial: answer(text, 'end') });
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  send({ type: 'text_end', partial: answer(text, 'end') });
  const usage = { input: said.length, output: text.length };
  // Exactly one terminal frame: `done`, or `error` with a message whose stop_reason is "error".
  send({ type: 'done', message: { ...answer(text, 'end'), usage } });
  channel.close();
  return { ok: true };
});

const announce = () =>
  worker.trigger({
    function_id: 'router::provider::register',
    payload: {
      id: 'parrot',
      display_name: 'Parrot',
      models: [{ id: model, provider: 'parrot', context_window: 8_192, max_output_tokens: 1_024, supports_tools: false }],
    },
  });

// A router that starts anew has forgotten its providers, and says so when it is ready.
worker.registerFunction('example-provider::announce', async () => {
  await announce();
  return null;
});
worker.registerTrigger({ type: 'router::ready', function_id: 'example-provider::announce', config: {} });
await announce();

leaveOnSignal(worker);
console.error('parrot-1 is there');
