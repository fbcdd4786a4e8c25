import type { AgentMessage, Entry, JsonObject, Usage } from '#libs/contracts';
import { buildSystemPrompt } from '#libs/prompts';
import { type Assembly, assembleContext, overflow, requestTokens } from '../context/assemble.js';
import type { TurnFailure } from '../machine/decision.js';
import type { Generation } from '../model/generate.js';
import { outputMode } from '../model/output-mode.js';
import { toolsFor } from '../model/tools.js';
import type { DispatchPolicy } from '../policy/policy.js';
import type { TurnRecord } from '../record/record.js';
import type { HookPoints } from './hook-points.js';
import type { LoopPorts } from './ports.js';

/** A request that is ready to be sent, or what has to happen instead. Tokens are estimates. */
export type Prepared =
  | { kind: 'ready'; generation: Generation; annotations: JsonObject | null; tokens: number; spent: Usage | null; notices: string[] }
  | Extract<Assembly, { kind: 'compacted' }>
  | { kind: 'failed'; failure: TurnFailure };

/** What hooks may add beyond what they added to the request before, in tokens. */
const HOOK_MARGIN_TOKENS = 256;

/** What the request of a step is made of: the window, and the messages that it gives. */
export interface RequestSource {
  window: readonly Entry[];
  messages: AgentMessage[];
  /** Tokens that it may have at most; null = what the model takes. */
  ceiling: number | null;
}

/**
 * Makes the request of a step: built, put together within what the model takes, and shown to the pre-generate hooks. When those
 * add so much that it does not fit any more, it is put together once more with room for that, and they are asked again.
 */
export async function prepareRequest(
  ports: LoopPorts,
  record: TurnRecord,
  source: RequestSource,
  { policy, hooks, signal }: { policy: DispatchPolicy; hooks: HookPoints; signal: AbortSignal },
): Promise<Prepared> {
  const { window, ceiling } = source;
  const built = await buildRequest(ports, record, source.messages, policy);
  let overhead = 0;
  const notices = new Set<string>();
  for (let tries = 1; ; tries += 1) {
    const assembly = await assembleContext(ports, { record, window, generation: built, ceiling, overhead, signal });
    if (assembly.kind !== 'ready') return assembly;
    const { generation, tokens, usable, spent } = assembly;
    if (assembly.notice !== undefined) notices.add(assembly.notice);
    const seen = await hooks.preGenerate(record, generation);
    if (!('generation' in seen)) return { kind: 'failed', failure: seen };
    const added = seen.generation === generation ? 0 : requestTokens(seen.generation) - requestTokens(generation);
    if (usable === null || tokens - overhead + added <= usable)
      return { kind: 'ready', ...seen, tokens: tokens - overhead + added, spent, notices: [...notices] };
    if (tries === 2) {
      const message = `hooks add about ${added} tokens to a request for which the model has ${usable}`;
      return { kind: 'failed', failure: overflow(record, message) };
    }
    overhead = added + HOOK_MARGIN_TOKENS;
  }
}

/** The request of one generation: system prompt, messages, and what the model may call. The same for every step but its messages. */
async function buildRequest(ports: LoopPorts, record: TurnRecord, messages: AgentMessage[], policy: DispatchPolicy): Promise<Generation> {
  const { options } = record;
  const mode = await outputMode(ports.bus, options);
  const tools = await toolsFor(ports.bus, options.functions, policy);
  return {
    ...systemPrompt(ports, record),
    messages,
    tools: mode.tool === undefined ? tools : [...tools, mode.tool],
    ...(mode.response_format === undefined ? {} : { response_format: mode.response_format }),
  };
}

function systemPrompt(ports: LoopPorts, record: TurnRecord): Pick<Generation, 'system_prompt' | 'stable_prompt'> {
  const { options, session_id, depth } = record;
  const root = ports.settings.current().default_filesystem_root;
  const { system_prompt, stable_prefix_length } = buildSystemPrompt({
    mode: options.mode,
    strategy: options.system_prompt_strategy,
    custom: options.system_prompt,
    expose: options.functions?.expose ?? 'agent_trigger',
    output: options.output.type,
    runtime: { session_id, depth, working_directory: root === 'off' ? null : (root ?? process.cwd()), policy: options.functions },
  });
  return { system_prompt, stable_prompt: system_prompt.slice(0, stable_prefix_length) };
}
