import type { AssistantMessage, ContentBlock, ErrorKind, StopReason, StreamFrame } from '#libs/contracts';
import { gate } from './gate.js';
import { type Scripted, text } from './scripted-model.js';

/** A generation that says a text. */
export const says = (value: string, stop_reason?: StopReason): Scripted => ({
  content: [text(value)],
  ...(stop_reason === undefined ? {} : { stop_reason }),
});
/** A generation that makes calls. */
export const asks = (...calls: ContentBlock[]): Scripted => ({ content: calls });

const message = (content: ContentBlock[], over: Partial<AssistantMessage>): AssistantMessage => ({
  role: 'assistant',
  content,
  model: 'scripted-1',
  provider: 'scripted',
  stop_reason: 'end',
  timestamp: 1,
  ...over,
});

/** A generation that fails, at once or after some text. */
export const fails = (error_message: string, error_kind: ErrorKind = 'permanent', partial = ''): Scripted => ({
  frames: [
    ...(partial === '' ? [] : [{ type: 'text_start' } as const, { type: 'text_delta', delta: partial } as const]),
    { type: 'error', error: message(partial === '' ? [] : [text(partial)], { stop_reason: 'error', error_kind, error_message }) },
  ],
});

/** A generation that a test holds in its hands. */
export interface Held {
  script: Scripted;
  /** Settles when the generation has begun, and `first` is on its way. */
  begun: Promise<void>;
  /** Settles when whoever asked has closed the stream. */
  closed: Promise<void>;
  /** Ends the generation with these blocks. */
  answer(...content: ContentBlock[]): void;
  /** Ends it with an error. */
  fail(error_message: string): void;
}

/** A generation that streams `first`, then waits for the test. */
export function held(first = ''): Held {
  const [begun, closed, frame] = [gate(), gate(), gate<StreamFrame>()];
  return {
    begun: begun.promise,
    closed: closed.promise,
    answer: (...content) =>
      frame.open({
        type: 'done',
        message: message(content, content.some((block) => block.type === 'function_call') ? { stop_reason: 'function_call' } : {}),
      }),
    fail: (error_message) =>
      frame.open({ type: 'error', error: message([], { stop_reason: 'error', error_kind: 'permanent', error_message }) }),
    script: async (_request, writer) => {
      const aborted = new Promise<void>((resolve) => writer.signal.addEventListener('abort', () => resolve(), { once: true }));
      void aborted.then(() => closed.open());
      await writer.send({ type: 'start' } satisfies StreamFrame);
      if (first !== '') {
        await writer.send({ type: 'text_start' } satisfies StreamFrame);
        await writer.send({ type: 'text_delta', delta: first } satisfies StreamFrame);
      }
      begun.open();
      const last = await Promise.race([frame.promise, aborted]);
      if (last !== undefined) await writer.send(last);
    },
  };
}
