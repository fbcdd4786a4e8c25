import type { ErrorKind, JsonValue } from '#libs/contracts';
import type { Part, Reply } from './reply.js';

/** What one generation of a script does. The last one has no end of its own when the script has none. */
export interface ScriptStep {
  parts: Part[];
  end: Reply['end'] | null;
}

/** How a script is written, for whoever asks with `/help`. */
export const SCRIPT_HELP = [
  'A message that begins with one of these lines is a script; each line is carried out in order:',
  '',
  '- `/call <function id> <json>` calls a function. `/call a {} && b {}` makes both calls in one message; `/calls` is another name for it.',
  '- `/say <text>` says the text, `/think <text>` thinks it; both go with the next call or with the final answer.',
  '- `/json <json>` answers with exactly this text.',
  '- `/error <kind> [retry after, in ms] [message]` fails; kinds: auth_expired, rate_limited, context_overflow, transient, permanent.',
  '- `/length` stops as a model does that has used up its tokens.',
  '- `/slow <ms>` pauses before each word from here on.',
].join('\n');

const COMMAND = /^\s*\/(calls?|say|think|json|error|slow|length|help)(?=\s|$)/;
const KINDS: readonly string[] = ['auth_expired', 'rate_limited', 'context_overflow', 'transient', 'permanent'] satisfies ErrorKind[];

/** True when the first line of the message is a command. */
export const isScript = (text: string): boolean => COMMAND.test(text);

/** Reads a script. A line that cannot be read becomes a text that says so; lines without a command are left out. */
export function parseScript(text: string): ScriptStep[] {
  const reader = new ScriptReader(text);
  const steps: ScriptStep[] = [];
  let parts: Part[] = [];
  let pauseMs: number | undefined;
  const close = (end: Reply['end']): void => {
    steps.push({ parts, end });
    parts = [];
  };
  const say = (words: string): void => {
    if (words !== '') parts.push({ type: 'text', text: words, pauseMs });
  };
  for (let command = reader.command(); command !== null; command = reader.command()) {
    switch (command) {
      case 'say':
        say(reader.line());
        break;
      case 'think':
        parts.push({ type: 'thinking', text: reader.line() || 'Thinking.', pauseMs });
        break;
      case 'slow': {
        const ms = Number(reader.line());
        if (Number.isFinite(ms) && ms >= 0) pauseMs = ms;
        else say('`/slow` needs a number of milliseconds.');
        break;
      }
      case 'help':
        say(SCRIPT_HELP);
        break;
      case 'json':
        say(reader.value());
        close({ stop_reason: 'end' });
        break;
      case 'length':
        if (!parts.some((part) => part.type === 'text')) say('This answer stops here because it has used up its tokens, in the middle of');
        close({ stop_reason: 'length' });
        break;
      case 'error':
        close({ error: readError(reader.line()) });
        break;
      case 'call':
      case 'calls': {
        const calls = reader.calls();
        for (const call of calls) {
          if ('wrong' in call) say(call.wrong);
          else
            parts.push({
              type: 'call',
              pauseMs,
              call: { ...call, description: `Call ${call.function_id} as the script says`.slice(0, 120) },
            });
        }
        if (parts.some((part) => part.type === 'call')) close({ stop_reason: 'function_call' });
        break;
      }
      default:
        throw new Error(`no such command: ${command}`);
    }
  }
  if (parts.length > 0) steps.push({ parts, end: null });
  return steps;
}

function readError(line: string): { kind: ErrorKind; message: string; retryAfterMs?: number } {
  const [kind = 'transient', ...rest] = line.split(/\s+/).filter((word) => word !== '');
  if (!KINDS.includes(kind))
    return { kind: 'permanent', message: `the demo script asks for an error of kind ${kind}; kinds: ${KINDS.join(', ')}` };
  const retryAfterMs = /^\d+$/.test(rest[0] ?? '') ? Number(rest.shift()) : undefined;
  const message = rest.join(' ') || `the demo script asks for an error of kind ${kind}`;
  return { kind: kind as ErrorKind, message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

type ReadCall = { function_id: string; arguments: JsonValue } | { wrong: string };

/** Reads commands and their values off a text; a JSON value may go over several lines. */
class ScriptReader {
  private at = 0;

  constructor(private readonly text: string) {}

  /** The next command at the beginning of a line or right after a call, or null at the end. */
  command(): string | null {
    while (this.at < this.text.length) {
      const found = COMMAND.exec(this.text.slice(this.at));
      if (found !== null) {
        this.at += found[0].length;
        return found[1] as string;
      }
      this.line();
    }
    return null;
  }

  line(): string {
    const end = this.text.indexOf('\n', this.at);
    const line = this.text.slice(this.at, end < 0 ? undefined : end);
    this.at = end < 0 ? this.text.length : end + 1;
    return line.trim();
  }

  /** The JSON value that comes next, as it is written; the rest of the line when there is no whole one. */
  value(): string {
    this.spaces();
    const end = endOfJson(this.text, this.at);
    if (end === null) return this.line();
    const value = this.text.slice(this.at, end);
    this.at = end;
    return value;
  }

  calls(): ReadCall[] {
    const calls: ReadCall[] = [];
    do calls.push(this.call());
    while (this.joined());
    return calls;
  }

  private call(): ReadCall {
    this.spaces();
    const function_id = /^[^\s{["]*/.exec(this.text.slice(this.at))?.[0] ?? '';
    this.at += function_id.length;
    this.spaces();
    const bare = /^(?:\n|$|&&|\/)/.test(this.text.slice(this.at));
    if (function_id === '') {
      this.line();
      return { wrong: '`/call` needs a function id: `/call <function id> <json>`.' };
    }
    if (bare) return { function_id, arguments: {} };
    const text = this.value();
    try {
      return { function_id, arguments: JSON.parse(text) as JsonValue };
    } catch (error) {
      return {
        wrong: `The arguments of \`${function_id}\` are not JSON (${error instanceof Error ? error.message : 'not valid'}), so I did not call it.`,
      };
    }
  }

  private joined(): boolean {
    const found = /^\s*&&/.exec(this.text.slice(this.at));
    if (found === null) return false;
    this.at += found[0].length;
    return true;
  }

  private spaces(): void {
    while (this.text[this.at] === ' ' || this.text[this.at] === '\t') this.at++;
  }
}

/** Where the JSON object, array or string that begins at `from` ends; null when there is none, or no end of it. */
function endOfJson(text: string, from: number): number | null {
  const first = text[from];
  if (first !== '{' && first !== '[' && first !== '"') return null;
  let depth = 0;
  let quoted = false;
  for (let i = from; i < text.length; i++) {
    const char = text[i];
    if (quoted) {
      if (char === '\\') i++;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === '{' || char === '[') depth++;
    else if (char === '}' || char === ']') depth--;
    if (depth === 0 && !quoted) return i + 1;
  }
  return null;
}
