/** A process whose conversation is summed up in a small window. Arguments: a data folder, and a file that gets a line for each summary. */
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { openRuntime } from '#libs/local';
import { compactionPrompt } from '#libs/prompts';
import { openTurns } from '../support/disk.js';
import { ScriptedModel, text } from '../support/scripted-model.js';

const [, , dataDir = '', counts = '', task = ''] = process.argv;
const model = new ScriptedModel();
model.fallback = ({ system_prompt }) => {
  if (system_prompt !== compactionPrompt()) return { content: [text('Right.')] };
  appendFileSync(counts, '{}\n');
  return { content: [text('The notes.')] };
};
const runtime = await openRuntime({
  dataDir,
  role: 'worker',
  prepare: ({ bus }) => model.register(bus, 'scripted', 'all', { context_window: 8_000, max_output_tokens: 1_000 }),
  log: (level, message, context) => {
    if (level === 'error' || level === 'warn') process.stderr.write(`${level}: ${message} ${JSON.stringify(context)}\n`);
  },
});
for (let turn = 1; task === 'talk' && turn <= 14; turn += 1) {
  const message = `message ${turn}: ${'word '.repeat(500)}`;
  const payload = { session_id: 's_summed', message, model: 'scripted-1', provider: 'scripted' };
  await runtime.bus.trigger({ function_id: 'harness::send', payload });
  while (openTurns(dataDir).length > 0) await sleep(10);
}
while (openTurns(dataDir).length > 0) await sleep(10);
await runtime.close();
