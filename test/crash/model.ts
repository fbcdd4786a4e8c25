import { existsSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AssistantMessage, type ContentBlock, type ProviderStreamRequest, type StreamFrame, textOf } from '#libs/contracts';
import type { Bus, ChannelWriter } from '#libs/iii';
import { agentCall, type Scripted, text } from '../support/scripted-model.js';
import { type Kind, kindOf } from './protocol.js';

const TARGETS: { [K in Kind]?: string[] } = {
  tools: ['probe::count', 'probe::count'],
  refused: ['probe::secret', 'probe::count'],
  throws: ['probe::fail'],
  steer: ['probe::steer', 'probe::count'],
  stop: ['probe::stop', 'probe::count'],
  hang: ['probe::hang', 'probe::count'],
  lasting: ['probe::last', 'probe::count'],
  leave: ['probe::leave', 'probe::count'],
  drop: ['probe::drop', 'probe::count'],
  held: ['probe::held', 'probe::count'],
  lapse: ['probe::lapse', 'probe::count'],
  spawn: ['harness::spawn', 'probe::count'],
  detach: ['probe::detach', 'probe::count'],
  lost: ['probe::lose', 'probe::count'],
};

/** What the right value of the output contract is. */
export const ANSWER = 7;
const NUDGE = 'Your answer does not meet';

/**
 * Decides from the conversation alone what the model does, so that it does the same after a restart. Only `flaky` and
 * `halt` leave a mark in the data folder, to happen once.
 */
export function reply(request: ProviderStreamRequest, bus: Bus, dataDir: string): Scripted {
  const { messages } = request;
  const last = messages.at(-1);
  if (last?.role !== 'user') return answer(request, `all done after ${messages.length} messages`);
  const said = textOf(last.content);
  if (said.startsWith(NUDGE)) return answer(request, '');
  const kind = kindOf(said);
  const session = said.split(' ', 2)[1] ?? '';
  const calls = (TARGETS[kind] ?? []).map((target, index) => {
    const id = `c${messages.length}_${index}`;
    return agentCall(id, target, target === 'harness::spawn' ? { task: `text ${session} for the child` } : { call: `${session}/${id}` });
  });
  if (calls.length > 0) return { content: [text(`calling for ${kind}`), ...calls] };
  switch (kind) {
    case 'broken':
      return { frames: [failure(request, 'permanent', [])] };
    case 'flaky': {
      const mark = `${dataDir}/flaky-${session}`;
      if (existsSync(mark)) return answer(request, 'an answer at the second try');
      return async (_request, writer) => {
        await stream(writer, 3);
        writeFileSync(mark, '');
        await writer.send(failure(request, 'transient', [text('part 0 part 1 part 2 ')]));
      };
    }
    case 'slow':
    case 'halt':
      return async (_request, writer) => {
        if (kind === 'halt') void bus.trigger({ function_id: 'probe::halt', payload: { session_id: session } });
        const content = await stream(writer, kind === 'halt' ? 200 : 12);
        await writer.send({ type: 'done', message: message(request, content) } satisfies StreamFrame);
      };
    default:
      return answer(request, `an answer to ${said}`);
  }
}

/**
 * The last word of a turn. Under an output contract the model first says something else, hands in a wrong value when it is
 * told so, and then the right one.
 */
function answer(request: ProviderStreamRequest, words: string): Scripted {
  const last = request.messages.at(-1);
  if (request.tools?.some((tool) => tool.name === 'submit_result') !== true) return { content: [text(words || 'an answer after all')] };
  const nudged = last?.role === 'user' && textOf(last.content).startsWith(NUDGE);
  const refused = last?.role === 'function_result' && last.is_error;
  if (!nudged && !refused) return { content: [text(words)] };
  const id = `c${request.messages.length}_submit`;
  return { content: [{ type: 'function_call', id, function_id: 'submit_result', arguments: { answer: nudged ? 'seven' : ANSWER } }] };
}

/** Streams a text in parts, with pauses, until the reader has had enough. */
async function stream(writer: ChannelWriter, parts: number): Promise<ContentBlock[]> {
  let all = '';
  await writer.send({ type: 'text_start' } satisfies StreamFrame);
  for (let part = 0; part < parts && !writer.signal.aborted; part += 1) {
    const delta = `part ${part} `;
    all += delta;
    await writer.send({ type: 'text_delta', delta } satisfies StreamFrame);
    await sleep(8);
  }
  await writer.send({ type: 'text_end' } satisfies StreamFrame);
  return [text(all)];
}

const message = (request: ProviderStreamRequest, content: ContentBlock[]): AssistantMessage => ({
  role: 'assistant',
  content,
  model: request.model,
  provider: 'scripted',
  stop_reason: 'end',
  timestamp: Date.now(),
  usage: { input: 10, output: 5 },
});

const failure = (request: ProviderStreamRequest, kind: 'permanent' | 'transient', content: ContentBlock[]): StreamFrame => ({
  type: 'error',
  error: { ...message(request, content), stop_reason: 'error', error_kind: kind, error_message: `a ${kind} failure` },
});
