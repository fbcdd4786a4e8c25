import {
  type AssistantMessage,
  type ContentBlock,
  type FunctionCallBlock,
  type FunctionResultMessage,
  type JsonValue,
  type MessageItem,
  textOf,
} from '#libs/contracts';
import { callText, unwrapCall } from './call-text.js';
import { bytes, count, cut, width } from './format.js';
import { jsonBlock, sanitize, sanitizeLine } from './sanitize.js';
import type { Style } from './style.js';
import { wrap } from './wrap.js';

/** Lines of a function result that are shown. */
const RESULT_LINES = 12;

const clock = (timestamp: number): string => new Date(timestamp).toISOString().replace('T', ' ').slice(0, 19);

/** A transcript as a person reads it: one passage for each entry. */
export class TranscriptText {
  constructor(
    private readonly style: Style,
    private readonly columns: number,
  ) {}

  /** Lines of one entry, with an empty line before it. */
  entry(item: MessageItem): string[] {
    const { message, custom } = item;
    if (custom !== undefined) return ['', ...this.custom(custom.custom_type, custom.data)];
    if (message === undefined) return [];
    switch (message.role) {
      case 'user':
        return ['', this.head('user', message.timestamp), ...message.content.flatMap((block) => this.block(block))];
      case 'assistant':
        return ['', ...this.assistant(message)];
      case 'function_result':
        return this.result(message);
      case 'custom':
        return ['', ...this.custom(message.custom_type, message.display ?? (textOf(message.content) || (message.details ?? null)))];
      default:
        throw new Error(`unknown role ${String((message satisfies never as { role: string }).role)}`);
    }
  }

  /** The line above an answer that is being written. */
  opening(message: AssistantMessage): string {
    return this.head('assistant', message.timestamp, ` · ${sanitizeLine(message.model)} (${sanitizeLine(message.provider)})`);
  }

  /** Lines of the calls of an answer. */
  calls(message: AssistantMessage): string[] {
    return message.content.flatMap((block) => (block.type === 'function_call' ? [this.call(block)] : []));
  }

  /** Two columns in, broken between words. */
  private indent(text: string): string[] {
    return text
      .split('\n')
      .flatMap((line) => wrap(line, this.columns - 2))
      .map((line) => (line === '' ? '' : `  ${line}`));
  }

  private head(role: string, timestamp: number, more = ''): string {
    return `${this.style.bold(role)}  ${this.style.dim(`${clock(timestamp)}${more}`)}`;
  }

  private assistant(message: AssistantMessage): string[] {
    const { usage } = message;
    const tokens = usage?.output == null ? '' : ` · ${count(usage.input ?? 0)} in / ${count(usage.output)} out`;
    const ended = message.stop_reason === 'length' || message.stop_reason === 'aborted' ? ` · ${message.stop_reason}` : '';
    const lines = [
      this.head('assistant', message.timestamp, ` · ${sanitizeLine(message.model)} (${sanitizeLine(message.provider)})${tokens}${ended}`),
    ];
    lines.push(...message.content.flatMap((block) => this.block(block)));
    if (message.error_message != null) lines.push(...this.indent(this.style.red(sanitize(message.error_message))));
    return lines;
  }

  private block(block: ContentBlock): string[] {
    switch (block.type) {
      case 'text':
        return this.indent(sanitize(block.text));
      case 'thinking':
        return this.indent(sanitize(block.text)).map((line) => this.style.dim(line));
      case 'redacted_thinking':
        return [this.style.dim('  (thinking that only its provider can read)')];
      case 'image':
        return [
          this.style.dim(
            `  (image ${sanitizeLine(block.mime)}${block.data === '' ? '' : `, ${bytes(Math.floor((block.data.length * 3) / 4))}`})`,
          ),
        ];
      case 'function_call':
        return [this.call(block)];
      case 'function_result':
        return this.outcome(block.function_call_id, block.content, block.is_error === true);
      default:
        throw new Error(`unknown block ${String((block satisfies never as { type: string }).type)}`);
    }
  }

  private call(block: FunctionCallBlock): string {
    const { functionId, args, description } = unwrapCall(block.function_id, block.arguments);
    const call = callText(functionId, args, this.columns - 4);
    const room = Math.min(this.columns - width(call) - 6, 120);
    return `  ${this.style.cyan('●')} ${call}${description === '' || room < 12 ? '' : `  ${this.style.dim(cut(description, room))}`}`;
  }

  private result({ function_id, content, is_error, details }: FunctionResultMessage): string[] {
    const shown: ContentBlock[] = content.length > 0 || details === null ? content : [{ type: 'text', text: JSON.stringify(details) }];
    return this.outcome(function_id, shown, is_error);
  }

  private outcome(name: string, content: readonly ContentBlock[], isError: boolean): string[] {
    const { dim, green, red } = this.style;
    const all = content.flatMap((block) =>
      block.type === 'text' ? sanitize(block.text).split('\n') : this.block(block).map((line) => line.trim()),
    );
    const left = all.length - RESULT_LINES;
    const lines = all
      .slice(0, left > 1 ? RESULT_LINES : all.length)
      .map((line) => `    ${dim(cut(line, Math.min(this.columns, 200) - 4))}`);
    if (left > 1) lines.push(dim(`    … ${left} more lines`));
    return [`  └ ${isError ? red('✗') : green('✓')} ${dim(sanitizeLine(name))}`, ...lines];
  }

  private custom(type: string, data: JsonValue): string[] {
    const text = typeof data === 'string' ? data : plainText(data);
    const paint = type === 'error' ? this.style.red : this.style.yellow;
    return [paint(this.style.bold(sanitizeLine(type))), ...this.indent(sanitize(text)).map((line) => paint(line))];
  }
}

/** The text of an object that is nothing but a message, else its JSON. */
function plainText(data: JsonValue): string {
  if (typeof data === 'object' && data !== null && !Array.isArray(data)) {
    const said = data['message'] ?? data['text'] ?? data['summary'];
    if (typeof said === 'string') return said;
  }
  return jsonBlock(data);
}
