import { StringDecoder } from 'node:string_decoder';
import type { OpenFile } from '../../confine/index.js';
import { cutText } from '../text.js';
import type { LineMatcher } from './matcher.js';

/** One matching line; `line` and `column` are 1-based, the column counts characters. */
export interface ContentMatch {
  path: string;
  line: number;
  column: number;
  text: string;
  before?: string[];
  after?: string[];
}

export interface SearchFileOptions {
  before: number;
  after: number;
  maxLineBytes: number;
  signal: AbortSignal;
  /** Called for each match in order; false ends the search of this file. */
  found: (match: ContentMatch) => boolean;
}

const CHUNK = 131_072;
/** Longer lines are searched up to here only. */
const MAX_LINE = 1_048_576;
const BINARY_PROBE = 8_192;

interface OpenMatch {
  match: ContentMatch;
  missing: number;
}

/** Searches one file by lines, in chunks. True when all of it was looked at; binary files count as looked at. */
export async function searchFile(file: OpenFile, path: string, matcher: LineMatcher, options: SearchFileOptions): Promise<boolean> {
  const decoder = new StringDecoder('utf8');
  const state = new FileSearch(path, matcher, options);
  let carry = '';
  let whole = true;
  for (let position = 0; ; ) {
    options.signal.throwIfAborted();
    const { bytesRead, buffer } = await file.handle.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK, position);
    const chunk = buffer.subarray(0, bytesRead);
    if (position === 0 && chunk.subarray(0, BINARY_PROBE).includes(0)) return true;
    position += bytesRead;
    const lines = (carry + (bytesRead === 0 ? decoder.end() : decoder.write(chunk))).split('\n');
    carry = lines.pop() ?? '';
    if (carry.length > MAX_LINE) {
      carry = cutText(carry, MAX_LINE);
      whole = false;
    }
    if (bytesRead === 0 && carry !== '') lines.push(carry);
    if (!(await state.feed(lines.map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line))))) return whole;
    if (bytesRead === 0) return whole;
  }
}

class FileSearch {
  private seen = 0;
  private recent: string[] = [];
  private open: OpenMatch[] = [];

  constructor(
    private readonly path: string,
    private readonly matcher: LineMatcher,
    private readonly options: SearchFileOptions,
  ) {}

  /** Takes the next lines; false when the search is to end. */
  async feed(lines: readonly string[]): Promise<boolean> {
    if (lines.length === 0) return true;
    const { before, after, maxLineBytes, found } = this.options;
    const show = (line: string): string => excerpt(line, 0, maxLineBytes);
    this.open = this.open.filter((one) => {
      const more = lines.slice(0, one.missing);
      one.match.after = [...(one.match.after ?? []), ...more.map(show)];
      one.missing -= more.length;
      return one.missing > 0;
    });
    for (const [index, start] of await this.matcher.match(lines)) {
      const line = lines[index] ?? '';
      const match: ContentMatch = {
        path: this.path,
        line: this.seen + index + 1,
        column: [...line.slice(0, start)].length + 1,
        text: excerpt(line, start, maxLineBytes),
      };
      if (before > 0) {
        const previous = index >= before ? lines.slice(index - before, index) : [...this.recent, ...lines.slice(0, index)].slice(-before);
        match.before = previous.map(show);
      }
      if (after > 0) {
        match.after = lines.slice(index + 1, index + 1 + after).map(show);
        if (match.after.length < after) this.open.push({ match, missing: after - match.after.length });
      }
      if (!found(match)) return false;
    }
    this.recent = before === 0 ? [] : [...this.recent, ...lines.slice(-before)].slice(-before);
    this.seen += lines.length;
    return true;
  }
}

/** At most `limit` bytes of a line around its match, with marks where something was left out. */
export function excerpt(line: string, start: number, limit: number): string {
  if (line.length <= limit && Buffer.byteLength(line) <= limit) return line;
  const total = Buffer.byteLength(line);
  const lead = Math.max(0, Math.min(start - Math.floor(limit / 4), line.length - limit));
  const from = isLowSurrogate(line, lead) ? lead + 1 : lead;
  let text = cutText(line.slice(from), limit);
  while (Buffer.byteLength(text) > limit) text = cutText(text, Math.floor((text.length * limit) / Buffer.byteLength(text)) - 1);
  return `${from > 0 ? '…' : ''}${text}… [line of ${total} bytes]`;
}

const isLowSurrogate = (text: string, at: number): boolean => {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff;
};
