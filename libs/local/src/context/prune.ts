import { type AgentMessage, type FunctionResultMessage, textOf } from '#libs/contracts';
import { messageTokens } from '#libs/turn';

/** What is pruned. Tokens, but for the characters of an output. */
export interface PruneRules {
  /** The newest results, of so many tokens in all, stay. */
  protect_recent_tokens: number;
  /** Nothing is done when less would become free. */
  min_free_tokens: number;
  /** Results of at most so many characters stay. */
  max_output_chars: number;
  protected_functions: readonly string[];
  /** The protected part begins at a multiple of this, so that it moves rarely; 1 = with every result. */
  step: number;
}

export interface Pruned {
  messages: AgentMessage[];
  pruned_parts: number;
  pruned_tokens: number;
  scanned_parts: number;
}

/** Replaces old, long results by placeholders. No message is removed. */
export function prune(messages: readonly AgentMessage[], rules: PruneRules): Pruned {
  const isProtected = new Set(rules.protected_functions);
  const results = messages.filter((message) => message.role === 'function_result' && !isProtected.has(message.function_id));
  const all = results.reduce((sum, result) => sum + messageTokens(result), 0);
  const aged = Math.floor((all - rules.protect_recent_tokens) / rules.step) * rules.step;
  let passed = 0;
  const placeholders = new Map<AgentMessage, AgentMessage>();
  for (const result of results) {
    passed += messageTokens(result);
    if (passed > aged) break;
    const placeholder = placeholderOf(result, rules.max_output_chars);
    if (placeholder !== null) placeholders.set(result, placeholder);
  }
  let freed = 0;
  for (const [result, placeholder] of placeholders) freed += messageTokens(result) - messageTokens(placeholder);
  const scanned_parts = results.length;
  if (placeholders.size === 0 || freed < rules.min_free_tokens)
    return { messages: [...messages], pruned_parts: 0, pruned_tokens: 0, scanned_parts };
  return {
    messages: messages.map((message) => placeholders.get(message) ?? message),
    pruned_parts: placeholders.size,
    pruned_tokens: freed,
    scanned_parts,
  };
}

const memo = new WeakMap<AgentMessage, FunctionResultMessage>();

function placeholderOf(message: AgentMessage, maxChars: number): FunctionResultMessage | null {
  if (message.role !== 'function_result') return null;
  const text = textOf(message.content);
  const images = message.content.some((block) => block.type === 'image');
  if (text.length <= maxChars && !images) return null;
  const known = memo.get(message);
  if (known !== undefined) return known;
  const note = `[The result of ${message.function_id} is left out here: it is old and had ${text.length} characters${images ? ' and images' : ''}. Call the function again if it is needed.]`;
  const placeholder: FunctionResultMessage = { ...message, content: [{ type: 'text', text: note }] };
  memo.set(message, placeholder);
  return placeholder;
}
