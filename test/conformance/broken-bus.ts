import type { JsonObject, JsonValue, SendRequest } from '#libs/contracts';
import type { Bus, FunctionDefinition, FunctionHandler, RegisterTriggerInput, TriggerRequest } from '#libs/iii';

/** One rule that a harness breaks, as a change of what passes over the bus between it and the run. */
export interface Fault {
  /** What such a harness does, without its subject. */
  does: string;
  /** The scenarios that must find it. */
  breaks: readonly string[];
  /** Changes a call of the run. */
  request?: (request: TriggerRequest) => TriggerRequest;
  /** Changes, or makes, the answer. */
  answer?: (request: TriggerRequest, ask: () => Promise<unknown>) => Promise<unknown>;
  /** Changes a function of the run. */
  handler?: (definition: FunctionDefinition, handler: FunctionHandler) => FunctionHandler;
  /** Changes a binding of the run. */
  binding?: (binding: RegisterTriggerInput) => RegisterTriggerInput;
}

/** A bus to a harness that breaks one rule. */
export const brokenBus = (bus: Bus, { request, answer, handler, binding }: Fault): Bus => ({
  trigger: async <T>(asked: TriggerRequest): Promise<T> => {
    const sent = request?.(asked) ?? asked;
    const ask = (): Promise<unknown> => bus.trigger(sent);
    return (await (answer === undefined ? ask() : answer(sent, ask))) as T;
  },
  registerFunction: (definition, run) => bus.registerFunction(definition, handler?.(definition, run) ?? run),
  registerTrigger: (trigger) => bus.registerTrigger(binding?.(trigger) ?? trigger),
  registerTriggerType: (definition, type) => bus.registerTriggerType(definition, type),
  createChannel: (options) => bus.createChannel(options),
  openWriter: (ref) => bus.openWriter(ref),
  openReader: (ref) => bus.openReader(ref),
});

type Message = { message?: { role: string; is_error?: boolean } };

/** Changes each send. */
const sends =
  (change: (send: SendRequest) => object): NonNullable<Fault['request']> =>
  (request) =>
    request.function_id === 'harness::send'
      ? { ...request, payload: { ...(request.payload as SendRequest), ...change(request.payload as SendRequest) } }
      : request;

/** Changes each answer of a function that is an object. */
const answers =
  (functionId: string, change: (answer: JsonObject) => JsonObject): NonNullable<Fault['answer']> =>
  async ({ function_id }, ask) => {
    const answer = (await ask()) as JsonObject | null;
    return function_id === functionId && answer !== null ? change(answer) : answer;
  };

const isModel = ({ id }: FunctionDefinition): boolean => id.startsWith('provider::');
const isHook = ({ id }: FunctionDefinition): boolean => /::(pre|post)_/.test(id);

/** Harnesses that each break one rule. */
export const FAULTS: readonly Fault[] = [
  {
    does: 'publishes no schemas',
    breaks: ['functions-published', 'trigger-types-published'],
    answer: async ({ function_id }, ask) => {
      const answer = (await ask()) as JsonObject & { functions?: JsonObject[] };
      if (function_id === 'engine::triggers::info') return { ...answer, configuration_schema: null };
      return function_id === 'engine::functions::info'
        ? { ...answer, functions: answer.functions?.map((row) => ({ ...row, request_schema: null })) }
        : answer;
    },
  },
  {
    does: 'takes every request',
    breaks: ['invalid-requests', 'refused-writes-nothing'],
    answer: async ({ function_id }, ask) =>
      await ask().catch((error: unknown) => (function_id.startsWith('harness::') ? {} : Promise.reject(error))),
  },
  {
    does: 'knows turns that were never there',
    breaks: ['unknown-sessions', 'refused-writes-nothing'],
    answer: async ({ function_id, payload }, ask) => {
      const answer = await ask();
      if (function_id !== 'harness::status' || answer !== null) return answer;
      return {
        ...(payload as JsonObject),
        status: 'completed',
        step: 0,
        turn_count: 0,
        max_turns: 1,
        depth: 0,
        pending_function_calls: [],
        children: [],
      };
    },
  },
  {
    does: 'loses what was said',
    breaks: ['plain-answer', 'tool-turn', 'pre-generate-rewrite', 'spawn'],
    answer: answers('session::messages', (answer) => ({ ...answer, messages: [] })),
  },
  {
    does: 'has ids of its own kind',
    breaks: ['plain-answer', 'new-session'],
    answer: answers('harness::send', (answer) => ({ ...answer, turn_id: `turn-${String(answer['turn_id'])}` })),
    request: sends(({ session_id, session }) => (session_id == null && session != null ? { session: null } : {})),
  },
  {
    does: 'begins a session for each message',
    breaks: ['conversation', 'merge', 'merge-while-waiting', 'stop-then-send'],
    request: sends(({ session_id }) => ({ session_id: `${session_id ?? 's'}-${Math.random()}` })),
  },
  {
    does: 'says of each message that it is merged',
    breaks: ['next-turn'],
    answer: answers('harness::send', (answer) => ({ ...answer, merged: true })),
  },
  {
    does: 'completes every turn',
    breaks: ['failed-generation', 'pre-turn-veto', 'pre-generate-veto', 'stop-stream'],
    answer: answers('harness::status', (answer) =>
      answer['status'] === 'failed' || answer['status'] === 'cancelled' ? { ...answer, status: 'completed' } : answer,
    ),
  },
  {
    does: 'takes every step for a new one',
    breaks: ['stale-step'],
    answer: answers('harness::turn', (answer) => ({ ...answer, skipped: false })),
  },
  { does: 'has no idempotency', breaks: ['idempotency-key'], request: sends(() => ({ idempotency_key: null })) },
  {
    does: 'calls every function twice',
    breaks: [
      'tool-turn',
      'native-exposure',
      'policy',
      'failing-function',
      'results-of-all-calls',
      'post-generate',
      'pre-trigger-rewrite',
      'hook-bound-twice',
      'hold-execute',
      'child-policy',
    ],
    handler: (definition, handler) =>
      isModel(definition)
        ? handler
        : async (payload, context) => {
            await Promise.resolve()
              .then(() => handler(payload, context))
              .catch(() => null);
            return await Promise.resolve(handler(payload, context));
          },
  },
  {
    does: 'does not say for whom it calls',
    breaks: ['provenance', 'child-policy'],
    handler: (_, handler) => (payload, context) => handler(payload, { ...context, metadata: undefined }),
  },
  {
    does: 'allows every function',
    breaks: ['deny-by-default', 'policy', 'native-exposure', 'function-trigger', 'child-policy'],
    request: sends(({ options }) => ({ options: { ...options, functions: { ...options?.functions, allow: ['*'], deny: [] } } })),
  },
  {
    does: 'hides the errors of calls',
    breaks: ['deny-by-default', 'never-for-a-model', 'unknown-function', 'failing-function', 'pre-trigger-deny', 'sweep'],
    answer: answers('session::messages', ({ messages, ...answer }) => ({
      ...answer,
      messages: (messages as Message[]).map((item) =>
        item.message?.role === 'function_result' ? { ...item, message: { ...item.message, is_error: false } } : item,
      ) as unknown as JsonValue,
    })),
  },
  {
    does: 'has no limit of generations',
    breaks: ['max-turns'],
    request: sends(({ options }) => ({ options: { ...options, max_turns: null } })),
  },
  {
    does: 'does not listen to its hooks',
    breaks: [
      'pre-turn-veto',
      'pre-generate-veto',
      'pre-generate-rewrite',
      'pre-trigger-rewrite',
      'pre-trigger-deny',
      'annotations',
      'hook-fails-closed',
      'post-trigger-rewrite',
      'hold-execute',
      'hold-deliver',
      'resolved-once',
      'sweep',
      'merge-while-waiting',
      'stop-parked',
      'stop-then-send',
    ],
    handler: (definition, handler) =>
      isHook(definition)
        ? async (payload, context) => {
            await Promise.resolve()
              .then(() => handler(payload, context))
              .catch(() => null);
            return null;
          }
        : handler,
  },
  {
    does: 'says of every answer to a call that it was taken',
    breaks: ['unknown-sessions', 'resolved-once', 'stop-parked'],
    answer: answers('harness::function::resolve', (answer) => ({ ...answer, resolved: true })),
  },
  {
    does: 'does not stop',
    breaks: ['stop-stream', 'stop-other-turn', 'stop-parked', 'stop-tree'],
    answer: async ({ function_id }, ask) => (function_id === 'harness::stop' ? { stopping: true } : await ask()),
  },
  {
    does: 'tells of no children and of no pending calls',
    breaks: ['spawn', 'spawn-waits', 'spawn-tree', 'stop-tree', 'hold-execute'],
    answer: answers('harness::status', (answer) => ({ ...answer, children: [], pending_function_calls: [] })),
  },
  {
    does: 'has no output contract',
    breaks: ['json-native', 'json-submitted', 'json-nudge', 'json-given-up'],
    request: sends(({ options }) => ({ options: { ...options, output: null } })),
  },
  {
    does: 'tells everybody of every turn',
    breaks: ['turn-events'],
    binding: (binding) => (binding.type.startsWith('harness::turn-') ? { ...binding, config: {} } : binding),
  },
  {
    does: 'does not tell of parents',
    breaks: ['child-events'],
    handler: (_, handler) => (payload, context) => {
      const { parent: _parent, ...rest } = payload as JsonObject;
      return handler(rest, context);
    },
  },
];
