import type OpenAI from 'openai';
import { type AssistantPart, argumentsObject, type ResultPart, type SaidPart, type Turn, turnsOf, wellFormed } from '../shared/history.js';
import { wireCallId, wireName } from '../shared/names.js';
import type { VendorRun } from '../shared/provider.js';
import { vendorSchema } from '../shared/tool-schema.js';
import { dataUrl, errorText } from './chat-request.js';
import { reasons } from './models.js';
import { cacheKey, effortOf, type Format, formatOf, IMAGES, outputLimit, passedOn, systemText } from './options.js';
import { restore } from './reasoning-item.js';

type Body = OpenAI.Responses.ResponseCreateParamsStreaming;
type Item = OpenAI.Responses.ResponseInputItem;

const MAX_CALL_ID = 64;
/** The vendor refuses a lower limit. */
const LEAST_OUTPUT = 16;

/** Makes the body of a Responses request. Nothing is stored at the vendor: reasoning comes back to us encrypted. */
export function responsesBody(run: VendorRun): Body {
  const { request, model } = run;
  const images = { ...IMAGES, allowed: model?.supports_vision !== false };
  const turns = turnsOf(request.messages, { provider: 'openai', model: request.model, images });
  const format = formatOf(run);
  const instructions = systemText(request.system_prompt, format);
  const tools = model?.supports_tools === false ? [] : (request.tools ?? []);
  const limit = outputLimit(run);
  const effort = effortOf(run);
  const thinks = reasons(request.model, model);
  return {
    ...passedOn(request.provider_options),
    model: request.model,
    input: turns.flatMap(itemsOf),
    stream: true,
    store: false,
    ...cacheKey(run),
    ...(thinks ? { include: ['reasoning.encrypted_content' as const] } : {}),
    ...(instructions === '' ? {} : { instructions: wellFormed(instructions) }),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map((tool) => ({
            type: 'function' as const,
            name: wireName(tool.name),
            ...(tool.description?.trim() ? { description: wellFormed(tool.description) } : {}),
            parameters: vendorSchema(tool.parameters).schema,
            strict: false,
          })),
        }),
    ...(limit === undefined ? {} : { max_output_tokens: Math.max(LEAST_OUTPUT, limit) }),
    ...(thinks && effort !== undefined ? { reasoning: { effort: effort as OpenAI.ReasoningEffort, summary: 'auto' as const } } : {}),
    ...textFormat(format),
  };
}

function textFormat(format: Format): Pick<Body, 'text'> {
  switch (format.kind) {
    case 'none':
      return {};
    case 'json':
      return { text: { format: { type: 'json_object' } } };
    case 'schema':
      return { text: { format: { type: 'json_schema', name: 'output', schema: format.schema, strict: format.strict } } };
    default:
      return format satisfies never;
  }
}

function itemsOf(turn: Turn): Item[] {
  if (turn.role === 'assistant') return turn.parts.flatMap(assistantItem);
  return [
    ...turn.results.map(outputItem),
    ...(turn.content.length === 0 ? [] : [{ role: 'user' as const, content: turn.content.map(inputPart) }]),
  ];
}

function assistantItem(part: AssistantPart): Item[] {
  switch (part.type) {
    case 'text':
      return [{ role: 'assistant', content: part.text }];
    case 'thinking':
    case 'redacted_thinking': {
      const item = part.type === 'thinking' ? restore(part.signature, part.text) : restore(part.data, '');
      return item === undefined ? [] : [item];
    }
    case 'call':
      return [
        {
          type: 'function_call',
          call_id: wireCallId(part.id, MAX_CALL_ID),
          name: wireName(part.function_id),
          arguments: JSON.stringify(argumentsObject(part.arguments)),
        },
      ];
    default:
      return part satisfies never;
  }
}

function outputItem(result: ResultPart): Item {
  const call_id = wireCallId(result.call_id, MAX_CALL_ID);
  if (result.content.every((part) => part.type === 'text')) {
    const text = result.content.map((part) => part.text).join('\n');
    return { type: 'function_call_output', call_id, output: result.is_error ? errorText(text) : text };
  }
  return { type: 'function_call_output', call_id, output: result.content.map(inputPart) };
}

function inputPart(part: SaidPart): OpenAI.Responses.ResponseInputText | OpenAI.Responses.ResponseInputImage {
  return part.type === 'text' ? { type: 'input_text', text: part.text } : { type: 'input_image', image_url: dataUrl(part), detail: 'auto' };
}
