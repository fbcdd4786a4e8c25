import type OpenAI from 'openai';
import { type AssistantPart, argumentsObject, type ResultPart, type SaidPart, type Turn, turnsOf, wellFormed } from '../shared/history.js';
import type { ImagePart } from '../shared/images.js';
import { wireCallId, wireName } from '../shared/names.js';
import type { VendorRun } from '../shared/provider.js';
import { vendorSchema } from '../shared/tool-schema.js';
import { cacheKey, effortOf, type Format, formatOf, IMAGES, OFFICIAL_URL, outputLimit, passedOn, systemText } from './options.js';

type Message = OpenAI.ChatCompletionMessageParam;
type Body = OpenAI.ChatCompletionCreateParamsStreaming;

/** The longest call id that chat completions takes. */
const MAX_CALL_ID = 40;

/** Makes the body of a chat completions request. */
export function chatBody(run: VendorRun): Body {
  const { request, model, api_url } = run;
  const images = { ...IMAGES, allowed: model?.supports_vision !== false };
  const turns = turnsOf(request.messages, { provider: 'openai', model: request.model, images });
  const format = formatOf(run);
  const system = systemText(request.system_prompt, format);
  const tools = model?.supports_tools === false ? [] : (request.tools ?? []);
  const limit = outputLimit(run);
  const effort = effortOf(run);
  return {
    ...passedOn(request.provider_options),
    model: request.model,
    messages: [...(system === '' ? [] : [{ role: 'system' as const, content: wellFormed(system) }]), ...turns.flatMap(messagesOf)],
    stream: true,
    stream_options: { include_usage: true },
    ...cacheKey(run),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map((tool) => ({
            type: 'function' as const,
            function: {
              name: wireName(tool.name),
              ...(tool.description?.trim() ? { description: wellFormed(tool.description) } : {}),
              parameters: vendorSchema(tool.parameters).schema,
            },
          })),
        }),
    // Servers that only follow this format know the older name of the limit.
    ...(limit === undefined ? {} : api_url === OFFICIAL_URL ? { max_completion_tokens: limit } : { max_tokens: limit }),
    ...(effort === undefined ? {} : { reasoning_effort: effort as OpenAI.ReasoningEffort }),
    ...responseFormat(format),
  };
}

function responseFormat(format: Format): Pick<Body, 'response_format'> {
  switch (format.kind) {
    case 'none':
      return {};
    case 'json':
      return { response_format: { type: 'json_object' } };
    case 'schema':
      return { response_format: { type: 'json_schema', json_schema: { name: 'output', schema: format.schema, strict: format.strict } } };
    default:
      return format satisfies never;
  }
}

function messagesOf(turn: Turn): Message[] {
  if (turn.role === 'assistant') return [assistantMessage(turn.parts)];
  const pictures = turn.results.flatMap(imagesOf);
  const said = [...pictures, ...turn.content];
  return [...turn.results.map(toolMessage), ...(said.length === 0 ? [] : [userMessage(said)])];
}

function assistantMessage(parts: readonly AssistantPart[]): Message {
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const tool_calls = parts.flatMap((part) =>
    part.type === 'call'
      ? [
          {
            id: wireCallId(part.id, MAX_CALL_ID),
            type: 'function' as const,
            function: { name: wireName(part.function_id), arguments: JSON.stringify(argumentsObject(part.arguments)) },
          },
        ]
      : [],
  );
  return { role: 'assistant', content: text === '' ? null : text, ...(tool_calls.length === 0 ? {} : { tool_calls }) };
}

/** A tool message holds text only; images of a result follow in a user message. */
function toolMessage(result: ResultPart): Message {
  const text = result.content.map((part) => (part.type === 'text' ? part.text : '[An image; it follows the results.]')).join('\n');
  return { role: 'tool', tool_call_id: wireCallId(result.call_id, MAX_CALL_ID), content: result.is_error ? errorText(text) : text };
}

function imagesOf(result: ResultPart): SaidPart[] {
  const images = result.content.filter((part): part is ImagePart => part.type === 'image');
  return images.length === 0 ? [] : [{ type: 'text', text: `Images in the result of ${result.function_id}:` }, ...images];
}

/** Says in words that a result is an error: this vendor has no field for it. */
export const errorText = (text: string): string => (/^\s*error\b/i.test(text) ? text : `Error: ${text}`);

function userMessage(parts: readonly SaidPart[]): Message {
  if (parts.every((part) => part.type === 'text')) return { role: 'user', content: parts.map((part) => part.text).join('\n\n') };
  return {
    role: 'user',
    content: parts.map((part) =>
      part.type === 'text' ? { type: 'text' as const, text: part.text } : { type: 'image_url' as const, image_url: { url: dataUrl(part) } },
    ),
  };
}

/** An image as a URL that holds it. */
export const dataUrl = (image: ImagePart): string => `data:${image.mime};base64,${image.data}`;
