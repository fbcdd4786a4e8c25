import type { AgentFunction, JsonValue, ResponseFormat } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import { SUBMIT_RESULT } from '../machine/calls.js';
import type { TurnOptions } from '../record/record.js';

/** How a turn's output contract is asked of the model: by the provider's own means, or by a function to hand the result in. */
export interface OutputMode {
  response_format?: ResponseFormat;
  tool?: AgentFunction;
}

/** Chooses how to ask: natively where the model can, else by `submit_result`. A model that nobody knows is asked natively. */
export async function outputMode(bus: Bus, options: TurnOptions): Promise<OutputMode> {
  const { output, model, provider } = options;
  if (output.type === 'text') return {};
  const schema = output.schema ?? null;
  if (await supportsNatively(bus, model, provider)) return { response_format: { type: 'json', ...(schema === null ? {} : { schema }) } };
  return {
    tool: {
      name: SUBMIT_RESULT,
      description: 'Hands in the result of the task and ends it. Call it once, when the result is complete.',
      parameters: parametersFor(schema),
      execution_mode: 'sequential',
    },
  };
}

async function supportsNatively(bus: Bus, model: string, provider: string | null): Promise<boolean> {
  try {
    const owner = provider ?? (await bus.trigger<{ provider: string }>({ function_id: 'router::route', payload: { model } })).provider;
    const { supported } = await bus.trigger<{ supported: boolean }>({
      function_id: 'router::models::supports',
      payload: { provider: owner, id: model, capability: 'structured_output' },
    });
    return supported;
  } catch {
    return true; // the generation itself will say what is wrong with the model
  }
}

/** Parameters are an object on every provider's wire, so another kind of value goes into `result`. */
function parametersFor(schema: JsonValue): JsonValue {
  const isObject =
    typeof schema === 'object' &&
    schema !== null &&
    !Array.isArray(schema) &&
    (schema['type'] === 'object' || schema['properties'] !== undefined);
  if (isObject) return schema;
  return { type: 'object', properties: { result: schema === null || schema === true ? {} : schema }, required: ['result'] };
}
