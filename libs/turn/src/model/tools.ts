import type { AgentFunction, JsonValue } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import { AGENT_TRIGGER } from '../machine/calls.js';
import type { DispatchPolicy } from '../policy/policy.js';
import type { TurnOptions } from '../record/record.js';

/** The one schema of `agent_trigger` exposure. */
const agentTrigger: AgentFunction = {
  name: AGENT_TRIGGER,
  description:
    'Calls one function of this system. Find functions with "engine::functions::list", read how to call one with "engine::functions::info", then call it by its id.',
  parameters: {
    type: 'object',
    properties: {
      function: { type: 'string', description: 'Id of the function to call, for example "engine::functions::list".' },
      description: { type: 'string', minLength: 1, maxLength: 120, description: 'What this call is for, in a few words.' },
      payload: { type: 'object', description: "The arguments, as the function's request schema wants them." },
    },
    required: ['function', 'description', 'payload'],
  },
  execution_mode: 'sequential',
};

interface ListedFunction {
  function_id: string;
}
interface FunctionInfo {
  function_id: string;
  description?: string;
  request_schema?: JsonValue;
  error?: string;
}

/** How many contracts one `engine::functions::info` call may ask for. */
const INFO_BATCH = 32;

/** What the model is offered to call, in a stable order. Nothing when the policy allows nothing. */
export async function toolsFor(bus: Bus, functions: TurnOptions['functions'], policy: DispatchPolicy): Promise<AgentFunction[]> {
  if (functions === null || functions.allow.length === 0) return [];
  if (functions.expose === 'agent_trigger') return [agentTrigger];
  const { functions: listed } = await bus.trigger<{ functions: ListedFunction[] }>({
    function_id: 'engine::functions::list',
    payload: { include_internal: true },
  });
  const ids = listed
    .map((row) => row.function_id)
    .filter((id) => policy.refusal(id) === null)
    .sort();
  const tools: AgentFunction[] = [];
  for (let start = 0; start < ids.length; start += INFO_BATCH) {
    const { functions: infos } = await bus.trigger<{ functions: FunctionInfo[] }>({
      function_id: 'engine::functions::info',
      payload: { function_ids: ids.slice(start, start + INFO_BATCH) },
    });
    for (const info of infos) if (info.error === undefined) tools.push(nativeTool(info));
  }
  return tools;
}

const nativeTool = (info: FunctionInfo): AgentFunction => ({
  name: info.function_id,
  description: info.description ?? '',
  parameters: info.request_schema ?? { type: 'object' },
  execution_mode: 'sequential',
});
