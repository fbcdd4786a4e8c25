import type { JsonValue } from '#libs/contracts';
import { asObject, type CallResult, code, short } from './reply.js';

const REFUSED = /polic(?:y|ies)|\bden(?:y|ied|ies)\b|not allowed|not permitted|forbidden|refused/i;

/** Tells in markdown what a call gave: an extract that suits the function, or why it gave nothing. */
export function report(result: CallResult): string {
  const id = code(result.function_id);
  if (result.is_error) {
    const reason = short(result.text, 300) || 'no reason was given';
    return REFUSED.test(result.text)
      ? `The call of ${id} was refused: ${reason}\n\n${howToAllow(result.function_id)}`
      : `The call of ${id} failed: ${reason}`;
  }
  const value = parsed(result);
  switch (result.function_id) {
    case 'coder::read-file':
      return aboutFile(String(asObject(result.arguments)['path'] ?? 'the file'), contentOf(value) ?? result.text);
    case 'coder::search':
      return aboutSearch(String(asObject(result.arguments)['query'] ?? ''), value);
    case 'coder::list-folder':
    case 'coder::tree':
      return aboutFolder(String(asObject(result.arguments)['path'] ?? '.'), value, result.text);
    case 'shell::exec':
      return aboutCommand(result.arguments, value, result.text);
    case 'web::fetch':
      return aboutPage(String(asObject(result.arguments)['url'] ?? 'the page'), value, result.text);
    case 'engine::functions::list':
      return aboutFunctions(listedFunctions(result));
    default:
      return `${id} answered: ${code(short(result.text, 200) || 'nothing')}`;
  }
}

/** How an operator lets a turn call a function. */
export function howToAllow(functionId: string): string {
  const group = `${functionId.split('::')[0] ?? functionId}::*`;
  return `To allow it, add ${code(functionId)} or ${code(group)} to \`options.functions.allow\` of the message (on the command line: ${code(`--allow "${group}"`)}), and see that no \`deny\` matches it.`;
}

/** The ids in the result of `engine::functions::list`, also when its text was cut. */
export function listedFunctions(result: CallResult): string[] {
  const sources = [result.text, typeof result.details === 'string' ? result.details : JSON.stringify(result.details)];
  for (const text of sources) {
    const ids = [...text.matchAll(/"function_id"\s*:\s*"([^"]+)"/g)].map((match) => match[1] as string);
    if (ids.length > 0) return [...new Set(ids)];
  }
  return [];
}

function parsed(result: CallResult): JsonValue {
  try {
    return JSON.parse(result.text) as JsonValue;
  } catch {
    return typeof result.details === 'object' && result.details !== null ? result.details : result.text; // the text is not JSON: it speaks for itself
  }
}

function contentOf(value: JsonValue): string | undefined {
  const { content } = asObject(value);
  return typeof content === 'string' ? content : undefined;
}

const items = (names: readonly string[], max: number): string =>
  names.slice(0, max).join('\n') + (names.length > max ? `\n- and ${names.length - max} more` : '');

/** The headline facts of a text: title, first paragraph, headings, or its first lines. */
export function aboutFile(path: string, content: string): string {
  const lines = content.replace(/\r\n?/g, '\n').replace(/\n$/, '').split('\n');
  const count = `${lines.length} ${lines.length === 1 ? 'line' : 'lines'}`;
  if (content.trim() === '') return `${code(path)} is empty.`;
  if (!/\.(?:md|markdown|mdx|txt|rst)$|^[^.]+$/i.test(path)) {
    const shown = lines.slice(0, 8).join('\n').slice(0, 600).trimEnd();
    return `${code(path)} has ${count}. It begins like this:\n\n\`\`\`\n${shown.replaceAll('```', "'''")}\n\`\`\``;
  }
  const { title, paragraph, headings } = outline(lines);
  const facts = [title === undefined ? `${code(path)} has ${count}.` : `${code(path)} is titled **${title}** and has ${count}.`];
  if (paragraph !== '') facts.push(`It says:\n\n> ${short(paragraph, 420)}`);
  if (headings.length > 0)
    facts.push(
      `Its ${headings.length === 1 ? 'section is' : 'sections are'}:\n\n${items(
        headings.map((h) => `- ${h}`),
        12,
      )}`,
    );
  return facts.join('\n\n');
}

function outline(lines: readonly string[]): { title: string | undefined; paragraph: string; headings: string[] } {
  let title: string | undefined;
  let fenced = false;
  let isOver = false;
  const paragraph: string[] = [];
  const headings: string[] = [];
  for (const line of lines) {
    const text = line.trim();
    if (/^(?:```|~~~)/.test(text)) fenced = !fenced;
    const heading = fenced ? null : /^(#{1,6})\s+(.+?)\s*#*$/.exec(text);
    if (heading !== null) {
      const words = heading[2] as string;
      if (title === undefined) title = words;
      else if ((heading[1] as string).length <= 2) headings.push(words);
    }
    const isProse = !fenced && heading === null && text !== '' && !/^(?:[<|>]|!\[|\[!\[|[-*_=]{3,}$|```|~~~)/.test(text);
    if (isOver) continue;
    if (isProse) paragraph.push(text);
    else isOver = paragraph.length > 0;
  }
  return { title, paragraph: paragraph.join(' '), headings };
}

function aboutSearch(query: string, value: JsonValue): string {
  const { content_matches: content, path_matches: paths, truncated } = asObject(value);
  const matches = Array.isArray(content) ? content.map(asObject) : [];
  const named = Array.isArray(paths) ? paths.map(asObject) : [];
  if (matches.length + named.length === 0) return `Nothing matches ${code(query)}.`;
  const inFiles = new Set(matches.map((match) => match['path'])).size;
  const lines = [
    ...matches.map((match) => `- ${code(`${String(match['path'])}:${String(match['line'])}`)} ${short(String(match['text'] ?? ''), 100)}`),
    ...named.map((match) => `- ${code(String(match['path']))} (its name)`),
  ];
  const more = truncated === true ? ' There are more than were returned.' : '';
  return `${code(query)} is found ${matches.length} ${matches.length === 1 ? 'time' : 'times'} in ${inFiles} ${inFiles === 1 ? 'file' : 'files'}.${more}\n\n${items(lines, 8)}`;
}

function aboutFolder(path: string, value: JsonValue, text: string): string {
  const names = namesIn(value);
  if (names.length === 0) return `${code(path)} looks like this:\n\n\`\`\`\n${text.slice(0, 800).trimEnd()}\n\`\`\``;
  return `${path === '.' ? 'The folder' : code(path)} has ${names.length} ${names.length === 1 ? 'entry' : 'entries'}:\n\n${items(
    names.map((name) => `- ${code(name)}`),
    20,
  )}`;
}

/** The names in a listing, one level deep, with a slash after folders. */
function namesIn(value: JsonValue): string[] {
  const found = Array.isArray(value) ? value : Object.values(asObject(value)).find((field) => Array.isArray(field));
  if (!Array.isArray(found)) {
    const nested = Object.values(asObject(value)).find((field) => Object.keys(asObject(field)).length > 0);
    return nested === undefined ? [] : namesIn(nested);
  }
  return found.flatMap((entry) => {
    if (typeof entry === 'string') return [entry];
    const { name, path, kind, type } = asObject(entry);
    const label = name ?? path;
    return typeof label === 'string' ? [/^dir/.test(String(kind ?? type ?? '')) ? `${label}/` : label] : [];
  });
}

function aboutCommand(args: JsonValue, value: JsonValue, text: string): string {
  const { command, args: rest } = asObject(args);
  const line = [command, ...(Array.isArray(rest) ? rest : [])].map(String).join(' ');
  const { stdout, stderr, exit_code: exit } = asObject(value);
  const output =
    [stdout, stderr].filter((part): part is string => typeof part === 'string' && part.trim() !== '').join('\n') ||
    (stdout === undefined ? text : '');
  const ended = typeof exit === 'number' ? `${code(line)} ended with exit code ${exit}` : `${code(line)} ran`;
  return output === ''
    ? `${ended} and printed nothing.`
    : `${ended} and printed:\n\n\`\`\`\n${output.slice(0, 800).trimEnd().replaceAll('```', "'''")}\n\`\`\``;
}

function aboutPage(url: string, value: JsonValue, text: string): string {
  const page = asObject(value);
  if (page['ok'] === false) return `${url} could not be fetched: ${short(String(page['message'] ?? page['error'] ?? text), 300)}`;
  const body = typeof page['body'] === 'string' ? page['body'] : text;
  const status = page['status'] === undefined ? '' : ` (status ${String(page['status'])})`;
  return `I fetched ${url}${status}.\n\n${aboutFile('page', body).replace(/^`page`/, 'The page')}`;
}

const aboutFunctions = (ids: readonly string[]): string =>
  ids.length === 0
    ? 'No function may be called in this turn.'
    : `${ids.length} ${ids.length === 1 ? 'function' : 'functions'} may be called:\n\n${items(
        ids.map((id) => `- ${code(id)}`),
        40,
      )}`;
