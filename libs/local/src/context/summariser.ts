import { type AgentMessage, type AssistantMessage, type ContentBlock, errorCode, textOf, type Usage } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import { compactionPrompt } from '#libs/prompts';
import { headOf, tailOf, textTokens, userText } from '#libs/turn';
import type { ModelInput } from './limits.js';

/** What is to be summed up. Tokens. */
export interface SummaryTask {
  model: ModelInput;
  messages: readonly AgentMessage[];
  previous: string | null;
  instructions: string | null;
  /** Longest summary. */
  max_tokens: number;
  /** What one request may take in all, and its answer. */
  usable: number;
  max_output: number;
  signal: AbortSignal;
}

/** The summary, or null when there is none that could be used; with what it has cost in any case. */
export interface SummaryOutcome {
  summary: string | null;
  usage: Usage | null;
}

/** Parts that a conversation is summed up in, one after the other; what is too much for them is shortened, then left out. */
const MAX_PARTS = 6;
/** How often a part is halved when the model says that it is too large. */
const MAX_HALVINGS = 2;
const SMALLEST_PART = 256;
const PIECE_CHARACTERS = 4_000;
const SHORT_PIECE_CHARACTERS = 400;
const WORDS_PER_TOKEN = 0.6;

/**
 * Sums up a conversation as plain text, in as many requests as it takes: no request holds calls or functions, so every model takes it.
 * Throws only when the caller has given up.
 */
export async function summarise(bus: Bus, task: SummaryTask): Promise<SummaryOutcome> {
  const frame = textTokens(compactionPrompt()) + task.max_tokens + textTokens(task.instructions ?? '') + SMALLEST_PART;
  let room = task.usable - frame;
  if (room < SMALLEST_PART) return { summary: null, usage: null };
  let usage: Usage | null = null;
  let notes = task.previous === null ? null : shortened(task.previous, task.max_tokens);
  let left = piecesFor(task.messages, room * MAX_PARTS);
  let halvings = 0;
  for (let requests = 0; left.length > 0 && requests < MAX_PARTS * 2 ** MAX_HALVINGS; requests += 1) {
    const taken = fitting(left, room);
    try {
      const message = await ask(bus, task, notes, left.slice(0, taken).join('\n\n'));
      usage = added(usage, message.usage ?? null);
      const said = plain(textOf(message.content)).trim();
      if (said === '') return { summary: null, usage };
      notes = shortened(said, task.max_tokens);
      left = left.slice(taken);
    } catch (error) {
      if (task.signal.aborted) throw error; // given up by the caller: that says nothing of summaries
      if (errorCode(error) !== 'router/context_overflow' || halvings === MAX_HALVINGS) return { summary: null, usage };
      halvings += 1;
      room = Math.floor(room / 2);
      left = left.map((piece) => shortened(piece, room));
    }
  }
  return { summary: left.length > 0 ? null : notes, usage };
}

/** Text without control characters: it becomes a part of later system prompts. */
const plain = (said: string): string =>
  said.replaceAll(/\p{Cc}/gu, (character) => (character === '\n' || character === '\t' ? character : ' '));

async function ask(bus: Bus, task: SummaryTask, notes: string | null, part: string): Promise<AssistantMessage> {
  const { model, max_tokens, max_output, instructions, signal } = task;
  const words = Math.floor(max_tokens * WORDS_PER_TOKEN);
  const request = [
    ...(notes === null || notes.trim() === '' ? [] : [`<notes>\n${notes.trim()}\n</notes>`]),
    `<conversation>\n${part}\n</conversation>`,
    `Write the new notes, ${words} words at most.${instructions === null ? '' : ` The person asks for this besides: ${instructions}`}`,
  ].join('\n\n');
  const { message } = await bus.trigger<{ message: AssistantMessage }>({
    function_id: 'router::complete',
    payload: {
      model: model.id,
      ...(model.provider == null ? {} : { provider: model.provider }),
      system_prompt: compactionPrompt(),
      messages: [userText(request, 0)],
      // A model that thinks before it answers needs more than the answer takes.
      ...(max_output > 0 ? { max_output_tokens: Math.min(max_output, Math.max(max_tokens * 2, 1_024)) } : {}),
    },
    timeoutMs: REQUEST_TIMEOUT_MS,
    signal,
  });
  return message;
}

/** The router has limits of its own, and who asked for the context another. */
const REQUEST_TIMEOUT_MS = 600_000;

/** How many pieces fit into a part; at least one. */
function fitting(pieces: readonly string[], room: number): number {
  let tokens = 0;
  const end = pieces.findIndex((piece) => {
    tokens += textTokens(piece) + 1;
    return tokens > room;
  });
  return end === -1 ? pieces.length : Math.max(1, end);
}

/** A conversation as texts, one a message, within `room` tokens: long ones are shortened, more so when they are many; then the oldest go. */
function piecesFor(messages: readonly AgentMessage[], room: number): string[] {
  const size = (pieces: readonly string[]): number => pieces.reduce((sum, piece) => sum + textTokens(piece) + 1, 0);
  const most = Math.floor(room / MAX_PARTS);
  const whole = messages.flatMap((message) => pieceOf(message, PIECE_CHARACTERS)).map((piece) => shortened(piece, most));
  if (size(whole) <= room) return whole;
  const short = messages.flatMap((message) => pieceOf(message, SHORT_PIECE_CHARACTERS)).map((piece) => shortened(piece, most));
  let tokens = size(short);
  const from = short.findIndex((piece) => {
    const fits = tokens <= room;
    tokens -= textTokens(piece) + 1;
    return fits;
  });
  return from <= 0 ? short : ['(The oldest part is left out.)', ...short.slice(from)];
}

/** What was said, so that nothing in it looks like the beginning of another message or the end of the conversation. */
const quoted = (said: string): string => said.replaceAll(/<(?=\/?(?:conversation|notes)>)/gi, '&lt;').replaceAll(/\r\n?|\n/g, '\n  ');

function pieceOf(message: AgentMessage, characters: number): string[] {
  const said = quoted(message.content.flatMap((block) => textOfBlock(block, characters)).join('\n'));
  if (said.trim() === '') return [];
  switch (message.role) {
    case 'user':
      return [`Person: ${said}`];
    case 'assistant':
      return [`Agent: ${said}`];
    case 'function_result':
      return [`Result of ${message.function_id}${message.is_error ? ' (an error)' : ''}: ${said}`];
    case 'custom':
      return [];
    default: {
      const unknown: never = message;
      throw new Error(`unknown message ${JSON.stringify(unknown)}`);
    }
  }
}

function textOfBlock(block: ContentBlock, characters: number): string[] {
  switch (block.type) {
    case 'text':
      return [middleCut(block.text, characters)];
    case 'function_call':
      return [`(calls ${block.function_id} with ${middleCut(JSON.stringify(block.arguments) ?? 'null', Math.floor(characters / 2))})`];
    case 'function_result':
      return block.content.flatMap((inner) => textOfBlock(inner, characters));
    case 'image':
      return ['(an image)'];
    case 'thinking':
    case 'redacted_thinking':
      return [];
    default: {
      const unknown: never = block;
      void unknown;
      return [];
    }
  }
}

const middleCut = (text: string, characters: number): string =>
  text.length <= characters ? text : `${headOf(text, Math.floor(characters / 2))}\n[...]\n${tailOf(text, Math.floor(characters / 2))}`;

/** A text within `limit` tokens; its end is left out. */
function shortened(text: string, limit: number): string {
  if (textTokens(text) <= limit) return text;
  for (let characters = limit * 4; ; characters = Math.floor(characters / 2)) {
    const head = `${headOf(text, characters - 8)}\n[...]`;
    if (characters <= 16 || textTokens(head) <= limit) return head;
  }
}

/** The usage of two requests together. */
function added(one: Usage | null, other: Usage | null): Usage | null {
  if (one === null || other === null) return one ?? other;
  const sum = (key: keyof Usage): { [k in keyof Usage]?: number } => {
    const total = (one[key] ?? 0) + (other[key] ?? 0);
    return one[key] == null && other[key] == null ? {} : { [key]: total };
  };
  return { ...sum('input'), ...sum('output'), ...sum('cache_read'), ...sum('cache_write'), ...sum('reasoning'), ...sum('cost_usd') };
}
