import type Anthropic from '@anthropic-ai/sdk';
import type { JsonObject, ProviderStreamRequest, SystemSection } from '#libs/contracts';
import { type AssistantPart, argumentsObject, type SaidPart, type Turn, turnsOf, wellFormed } from '../shared/history.js';
import { wireCallId, wireName } from '../shared/names.js';
import { outputSchema } from '../shared/output-schema.js';
import type { VendorRun } from '../shared/provider.js';
import { vendorSchema } from '../shared/tool-schema.js';
import { BINDING_BETA, holdsBoundThinking, thinkingOf } from './thinking.js';

type Body = Anthropic.MessageCreateParamsStreaming;
type Block = Anthropic.ContentBlockParam;
type Cacheable = Anthropic.TextBlockParam | Anthropic.ImageBlockParam | Anthropic.ToolUseBlockParam | Anthropic.ToolResultBlockParam;

const IMAGES = { mimes: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'], maxEach: 5 * 1_048_576, maxTotal: 24 * 1_048_576 };
const MAX_CALL_ID = 64;
/** Output limit for a model of which nothing is known: old ones take no more. */
const DEFAULT_MAX_TOKENS = 8_192;
/** Options of ours, which are no part of the body. */
const OWN_OPTIONS = new Set(['betas', 'cache', 'cache_ttl']);
/** What a caller's options may not replace. */
const OURS = new Set(['messages', 'system', 'tools', 'stream', 'model', 'max_tokens']);

/** Makes the body of a Messages request, and the names of the beta features that it uses. */
export function messagesRequest(run: VendorRun): { body: Body; betas: string[] } {
  const { request, model } = run;
  const options = request.provider_options ?? {};
  const images = { ...IMAGES, allowed: model?.supports_vision !== false };
  const turns = turnsOf(request.messages, { provider: 'anthropic', model: request.model, images });
  const mark = cacheMark(options, model?.supports_cache !== false);
  const tools = toolsOf(run);
  const limit = run.max_tokens ?? model?.max_output_tokens ?? DEFAULT_MAX_TOKENS;
  const max_tokens = request.max_output_tokens ?? Math.min(limit, model?.max_output_tokens ?? limit);
  const messages = turns.map(messageOf);
  const { format, hint } = formatOf(run);
  const sections = sectionsOf(request, hint);
  const system = sections.map(({ text }): Anthropic.TextBlockParam => ({ type: 'text', text }));
  if (mark !== undefined)
    markCache(
      mark,
      system,
      tools,
      messages,
      sections.findIndex(({ cache_boundary }) => cache_boundary),
    );
  const bound = holdsBoundThinking(request.model, turns);
  const thinking = thinkingOf(run, turns, max_tokens, bound);
  const effort = thinking?.effort === undefined ? {} : { effort: thinking.effort };
  const output_config = { ...effort, ...(format === undefined ? {} : { format }) };
  const body = {
    ...passedOn(options),
    model: request.model,
    max_tokens,
    messages,
    stream: true,
    ...(system.length === 0 ? {} : { system }),
    ...(tools.length === 0 ? {} : { tools }),
    ...(thinking === undefined ? {} : { thinking: thinking.config }),
    ...(Object.keys(output_config).length === 0 ? {} : { output_config: { ...asObject(options['output_config']), ...output_config } }),
  } as Body;
  return { body, betas: [...betasOf(options), ...(bound ? [BINDING_BETA] : [])] };
}

const betasOf = (options: JsonObject): string[] => {
  const betas = options['betas'];
  return Array.isArray(betas) ? betas.filter((beta): beta is string => typeof beta === 'string') : [];
};

const passedOn = (options: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(options).filter(([key]) => !OWN_OPTIONS.has(key) && !OURS.has(key)));

const asObject = (value: unknown): object => (typeof value === 'object' && value !== null ? value : {});

/** The system prompt in the parts that it was given in, where they are really the whole of it. */
function sectionsOf({ system_prompt, system_sections: given }: ProviderStreamRequest, hint: string): SystemSection[] {
  const prompt = system_prompt ?? '';
  const whole = given != null && given.map(({ text }) => text).join('') === prompt ? given : [{ text: prompt, cache_boundary: false }];
  return [...whole, { text: hint, cache_boundary: false }]
    .filter(({ text }) => text.trim() !== '')
    .map((section) => ({ ...section, text: wellFormed(section.text) }));
}

function toolsOf({ request, model }: VendorRun): Anthropic.Tool[] {
  if (model?.supports_tools === false) return [];
  return (request.tools ?? []).map((tool) => ({
    name: wireName(tool.name),
    ...(tool.description?.trim() ? { description: wellFormed(tool.description) } : {}),
    input_schema: vendorSchema(tool.parameters).schema as unknown as Anthropic.Tool.InputSchema,
  }));
}

function messageOf(turn: Turn): Anthropic.MessageParam {
  if (turn.role === 'assistant') return { role: 'assistant', content: turn.parts.map(assistantBlock) };
  const results = turn.results.map(
    (result): Block => ({
      type: 'tool_result',
      tool_use_id: wireCallId(result.call_id, MAX_CALL_ID),
      content: result.content.map(saidBlock),
      ...(result.is_error ? { is_error: true } : {}),
    }),
  );
  return { role: 'user', content: [...results, ...turn.content.map(saidBlock)] };
}

function saidBlock(part: SaidPart): Anthropic.TextBlockParam | Anthropic.ImageBlockParam {
  if (part.type === 'text') return { type: 'text', text: part.text };
  return { type: 'image', source: { type: 'base64', media_type: part.mime as Anthropic.Base64ImageSource['media_type'], data: part.data } };
}

function assistantBlock(part: AssistantPart): Block {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'thinking':
      return { type: 'thinking', thinking: part.text, signature: part.signature };
    case 'redacted_thinking':
      return { type: 'redacted_thinking', data: part.data };
    case 'call':
      return {
        type: 'tool_use',
        id: wireCallId(part.id, MAX_CALL_ID),
        name: wireName(part.function_id),
        input: argumentsObject(part.arguments),
      };
    default:
      return part satisfies never;
  }
}

function cacheMark(options: JsonObject, supported: boolean): Anthropic.CacheControlEphemeral | undefined {
  if (!supported || options['cache'] === false) return undefined;
  return options['cache_ttl'] === '1h' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' };
}

/**
 * Marks where the vendor may cut its cache: after what is the same for all sessions (the part of the system prompt with index
 * `shared`, else the tools), after the system prompt, and after the last two user messages, so that the next request finds
 * what this one wrote. Four marks are the most that it takes.
 */
function markCache(
  mark: Anthropic.CacheControlEphemeral,
  system: Anthropic.TextBlockParam[],
  tools: Anthropic.Tool[],
  messages: Anthropic.MessageParam[],
  shared: number,
): void {
  const first = system[shared] ?? tools.at(-1);
  if (first !== undefined) first.cache_control = mark;
  const prompt = system.at(-1);
  if (prompt !== undefined) prompt.cache_control = mark;
  const users = messages.filter((message) => message.role === 'user').slice(-2);
  for (const { content } of users) {
    const last = Array.isArray(content) ? content.at(-1) : undefined;
    if (last !== undefined && canBeMarked(last)) last.cache_control = mark;
  }
}

const canBeMarked = (block: Block): block is Cacheable =>
  block.type === 'image' || block.type === 'tool_result' || (block.type === 'text' && block.text.trim() !== '');

/** Structured output: enforced by the vendor where it can be, asked for in words where not. */
function formatOf({ request, model }: VendorRun): { format?: Anthropic.JSONOutputFormat; hint: string } {
  const wanted = request.response_format;
  if (wanted === undefined || wanted === null) return { hint: '' };
  const schema = model?.supports_structured_output === false ? undefined : outputSchema(wanted.schema);
  if (schema !== undefined) return { format: { type: 'json_schema', schema }, hint: '' };
  const like = wanted.schema === undefined ? '' : ` It must be valid under this JSON Schema: ${JSON.stringify(wanted.schema)}`;
  return { hint: `Answer with one JSON value and nothing else.${like}` };
}
