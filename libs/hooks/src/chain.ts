import { errorMessage, type HookInput, type HookMutations, type JsonObject, type JsonValue } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import type { HookBinding } from './binding.js';
import { readOutput } from './output.js';

/** What a chain of hooks came to. `by` is the function that decided. Mutations of all hooks so far are in `input`. */
export type ChainOutcome =
  /** The signal was given while a hook was asked: nothing is known of what it would have said. */
  | { kind: 'stopped' }
  | { kind: 'continue'; input: HookInput; annotations: JsonObject | null }
  | { kind: 'deny'; by: string; reason: string; annotations: JsonObject | null }
  | { kind: 'hold'; by: string; input: HookInput; pending_timeout_ms: number | null; annotations: JsonObject | null };

/**
 * Runs hooks in order; each sees what the one before left, the first deny or hold ends the chain. A hook that throws, is
 * away, takes too long or answers what it may not has failed: `fail_closed` makes that a denial, `fail_open` goes on
 * without it. The chain keeps no state between calls, so any number run side by side.
 */
export async function runChain(
  bus: Pick<Bus, 'trigger'>,
  chain: readonly HookBinding[],
  input: HookInput,
  signal?: AbortSignal,
): Promise<ChainOutcome> {
  let current = input;
  let annotations: JsonObject | null = null;
  for (const hook of chain) {
    const answer = await ask(bus, hook, current, signal);
    if (answer.kind === 'failed') {
      if (signal?.aborted === true) return { kind: 'stopped' };
      if (hook.on_error === 'fail_open') continue;
      return {
        kind: 'deny',
        by: hook.function_id,
        reason: `the hook ${hook.function_id} failed (${answer.why}), so this was not allowed`,
        annotations,
      };
    }
    const { output } = answer;
    if (output === null) continue;
    if (output.decision === 'deny') return { kind: 'deny', by: hook.function_id, reason: output.reason, annotations };
    current = mutate(current, output.mutations);
    if (output.decision === 'hold') {
      return { kind: 'hold', by: hook.function_id, input: current, pending_timeout_ms: output.pending_timeout_ms ?? null, annotations };
    }
    if (output.annotations !== undefined) annotations = { ...(annotations ?? {}), ...output.annotations };
  }
  return { kind: 'continue', input: current, annotations };
}

type Answer = { kind: 'answered'; output: ReturnType<typeof readOutput> } | { kind: 'failed'; why: string };

async function ask(bus: Pick<Bus, 'trigger'>, hook: HookBinding, input: HookInput, signal: AbortSignal | undefined): Promise<Answer> {
  try {
    const value = await bus.trigger({
      function_id: hook.function_id,
      payload: structuredClone(input),
      timeoutMs: hook.timeout_ms,
      repeatable: true,
      ...(hook.metadata === undefined ? {} : { metadata: hook.metadata }),
      ...(signal === undefined ? {} : { signal }),
    });
    return { kind: 'answered', output: readOutput(input.point, value) };
  } catch (error) {
    return { kind: 'failed', why: errorMessage(error).slice(0, 500) };
  }
}

/** What a hook of this process set, as it would have come over a wire: what JSON has no word for is null. */
const jsonOf = (value: JsonValue | undefined): JsonValue => JSON.parse(JSON.stringify(value) ?? 'null') as JsonValue;

/** Applies a hook's changes; each point has its own, the rest of the input stays. */
function mutate(input: HookInput, mutations: HookMutations | undefined): HookInput {
  if (mutations === undefined) return input;
  const { generate, call, result } = input;
  if (generate !== undefined) {
    return {
      ...input,
      generate: {
        ...generate,
        system_prompt: mutations.system_prompt ?? generate.system_prompt,
        messages: [...generate.messages, ...(mutations.append_messages ?? [])],
      },
    };
  }
  if (call !== undefined) return 'arguments' in mutations ? { ...input, call: { ...call, arguments: jsonOf(mutations.arguments) } } : input;
  if (result !== undefined) {
    return {
      ...input,
      result: {
        ...result,
        content: mutations.content ?? result.content,
        details: 'details' in mutations ? jsonOf(mutations.details) : result.details,
        is_error: mutations.is_error ?? result.is_error,
      },
    };
  }
  return input;
}
