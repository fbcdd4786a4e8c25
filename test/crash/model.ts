import { existsSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AssistantMessage, type ContentBlock, type ProviderStreamRequest, type StreamFrame, textOf } from '#libs/contracts';
import type { Bus, ChannelWriter } from '#libs/iii';
import { agentCall, type Scripted, text } from '../support/scripted-model.js';
import type { Kind } from './protocol.js';

const TARGETS: { [K in Kind]?: string[] } = {
  tools: ['probe::count', 'probe::count'],
  refused: ['probe::secret', 'probe::count'],
  throws: ['probe::fail'],
  steer: ['probe::steer', 'probe::count'],
  stop: ['probe::stop', 'probe::count'],
  hang: ['probe::hang', 'probe::count'],
  leave: ['probe::leave', 'probe::count'],
  drop: ['probe::drop', 'probe::count'],
  held: ['probe::held', 'probe::count'],
  spawn: ['harness::spawn', 'probe::count'],
};

/**
 * Decides from the conversation alone what the model does, so that it does the same after a restart. Only `flaky` and
 * `halt` leave a mark in the data folder, to happen once.
 */
export function reply(request: ProviderStreamRequest, bus: Bus, dataDir: string): Scripted {
  const { messages } = request;
  const last = messages.at(-1);
  if (last?.role !== 'user') return { content: [text(`all done after ${messages.length} messages`)] };
  const [kind = 'text', session = ''] = textOf(last.content).split(' ') as [Kind, string];
  const calls = (TARGETS[kind] ?? []).map((target, index) => {
    const id = `c${messages.length}_${index}`;
    return agentCall(id, target, target === 'harness::spawn' ? { task: `text ${session} for the child` } : { call: `${session}/${id}` });
  });
  switch (kind) {
    case 'tools':
    case 'refused':
    case 'throws':
    case 'steer':
    case 'stop':
    case 'hang':
    case 'leave':
    case 'drop':
    case 'held':
    case 'spawn':
      return { content: [text(`calling for ${kind}`), ...calls] };
    case 'text':
      return { content: [text(`an answer to ${textOf(last.content)}`)] };
    case 'broken':
      return { frames: [failure(request, 'permanent', [])] };
    case 'flaky': {
      const mark = `${dataDir}/flaky-${session}`;
      if (existsSync(mark)) return { content: [text('an answer at the second try')] };
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
    default: {
      const unknown: never = kind;
      throw new Error(`unknown kind ${JSON.stringify(unknown)}`);
    }
  }
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
