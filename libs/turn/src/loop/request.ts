import type { AgentMessage } from '#libs/contracts';
import { buildSystemPrompt } from '#libs/prompts';
import type { Generation } from '../model/generate.js';
import { outputMode } from '../model/output-mode.js';
import { toolsFor } from '../model/tools.js';
import type { DispatchPolicy } from '../policy/policy.js';
import type { TurnRecord } from '../record/record.js';
import type { LoopPorts } from './ports.js';

/** The request of one generation: system prompt, messages, and what the model may call. The same for every step but its messages. */
export async function buildRequest(
  ports: LoopPorts,
  record: TurnRecord,
  messages: AgentMessage[],
  policy: DispatchPolicy,
): Promise<Generation> {
  const { options } = record;
  const mode = await outputMode(ports.bus, options);
  const tools = await toolsFor(ports.bus, options.functions, policy);
  return {
    system_prompt: systemPrompt(ports, record),
    messages,
    tools: mode.tool === undefined ? tools : [...tools, mode.tool],
    ...(mode.response_format === undefined ? {} : { response_format: mode.response_format }),
  };
}

function systemPrompt(ports: LoopPorts, record: TurnRecord): string {
  const { options, session_id, depth } = record;
  const root = ports.settings.current().default_filesystem_root;
  return buildSystemPrompt({
    mode: options.mode,
    strategy: options.system_prompt_strategy,
    custom: options.system_prompt,
    expose: options.functions?.expose ?? 'agent_trigger',
    output: options.output.type,
    runtime: { session_id, depth, working_directory: root === 'off' ? null : (root ?? process.cwd()), policy: options.functions },
  }).system_prompt;
}
