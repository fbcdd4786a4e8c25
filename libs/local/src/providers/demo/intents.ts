import type { JsonObject, JsonValue } from '#libs/contracts';
import type { PlannedCall } from './reply.js';

/** Something that a request asks for. Its calls go out in one message. */
export interface Intent {
  /** Completes "I need a function to ...". */
  purpose: string;
  calls: PlannedCall[];
}

const QUOTED = /`[^`]+`|"[^"]+"|“[^”]+”|(?<=^|[\s(])'[^']+'(?=$|[\s).,;:!?])/g;
const VERB =
  '(?:read|open|show|print|view|list|search|find|grep|look|fetch|download|run|execute|write|create|save|tell|explain|delegate|ask|summari[sz]e|describe)';
const BETWEEN = new RegExp(`\\n+|;\\s*|[.!?]\\s+|,?\\s+(?:and\\s+)?then\\s+|,?\\s+and\\s+(?=${VERB}\\b)|,\\s+(?=${VERB}\\b)`, 'i');
const FILE =
  /(?<![\w./@-])(?:[\w@.-]*\/)*[\w@-][\w@.-]*\.[A-Za-z][A-Za-z0-9]{0,9}(?![\w/@-])|\b(?:README|CHANGELOG|CONTRIBUTING)\b(?!\.)|\b(?:LICENSE|Makefile|Dockerfile)\b(?!\.)/g;
const URL_PATTERN = /https?:\/\/[^\s<>"'`)\]]+/;

/** What a request asks for, in its order, each thing once. Empty when it asks for nothing that a function could do. */
export function intentsOf(request: string): Intent[] {
  const task = /\b(?:sub-?agent|delegate|spawn)\b[^:\n]*:\s*([\s\S]+)$/i.exec(request)?.[1];
  if (task !== undefined) return [subAgent(task)];
  const quoted: string[] = [];
  const masked = request.replace(QUOTED, (span) => `\uE000${quoted.push(span) - 1}\uE000`);
  const clauses = masked.split(BETWEEN).map((clause) => clause.replace(/\uE000(\d+)\uE000/g, (_, n: string) => quoted[Number(n)] ?? ''));
  const found: Intent[] = [];
  const seen = new Set<string>();
  for (const clause of clauses) {
    const intent = intentOf(clause.trim());
    const calls = intent?.calls.filter((call) => !seen.has(keyOf(call))) ?? [];
    for (const call of calls) seen.add(keyOf(call));
    if (intent !== null && calls.length > 0) found.push({ ...intent, calls });
  }
  if (found.length === 0 && /\b(?:this|the) (?:project|repo(?:sitory)?|code ?base)\b/i.test(request)) return [read(['README.md'])];
  return found;
}

const keyOf = (call: PlannedCall): string => JSON.stringify([call.function_id, call.arguments]);

function intentOf(clause: string): Intent | null {
  const url = URL_PATTERN.exec(clause)?.[0]?.replace(/[.,;:!?]+$/, '');
  if (url !== undefined) return one('fetch a page', 'web::fetch', { url }, `Fetch ${url}`);
  return delegate(clause) ?? run(clause) ?? write(clause) ?? functions(clause) ?? search(clause) ?? folder(clause) ?? files(clause);
}

const one = (purpose: string, function_id: string, args: JsonValue, description: string): Intent => ({
  purpose,
  calls: [{ function_id, arguments: args, description: description.slice(0, 120) }],
});

const read = (paths: readonly string[]): Intent => ({
  purpose: paths.length === 1 ? `read ${paths[0] ?? 'a file'}` : 'read files',
  calls: paths.map((path) => ({ function_id: 'coder::read-file', arguments: { path }, description: `Read ${path}`.slice(0, 120) })),
});

function delegate(clause: string): Intent | null {
  const task = /\bsub-?agent\b.*?\bto\b\s*(.+)$/i.exec(clause)?.[1];
  return task === undefined ? null : subAgent(task);
}

const subAgent = (task: string): Intent => one('start a sub-agent', 'harness::spawn', { task: unquote(task) }, `Delegate: ${task}`);

function run(clause: string): Intent | null {
  const found = /\b(?:run|execute)\b:?\s+(?:the\s+)?(?:shell\s+)?(?:command\b:?\s*)?(.+)$/i.exec(clause)?.[1];
  if (found === undefined) return null;
  const line = unquote(/^`[^`]+`|^"[^"]+"/.exec(found)?.[0] ?? found.replace(/[.?!]+$/, ''));
  const needsShell = /[|&;<>$`"'*(){}\\]/.test(line);
  const [command = '', ...args] = line.split(/\s+/);
  return one('run a command', 'shell::exec', needsShell ? { command: 'sh', args: ['-c', line] } : { command, args }, `Run ${line}`);
}

function write(clause: string): Intent | null {
  const path = pathsIn(clause)[0];
  if (path === undefined || !/\b(?:write|create|save)\b/i.test(clause)) return null;
  const after = /\b(?:with|containing)\s+(?:the\s+)?(?:(?:text|content|words?)\s+)?(.+)$/i.exec(clause)?.[1];
  const before = /\b(?:write|save)\s+(.+?)\s+(?:in)?to\s/i.exec(clause)?.[1];
  const content = `${unquote(after ?? before ?? '')}\n`;
  return one('write a file', 'coder::create-file', { files: [{ path, content }] }, `Write ${path}`);
}

function functions(clause: string): Intent | null {
  if (!/\bwhat can you (?:do|call)\b|\b(?:list|show|which|what)\b.*\b(?:functions|tools|capabilities)\b/i.test(clause)) return null;
  return one('list the functions', 'engine::functions::list', {}, 'List the functions that may be called');
}

function search(clause: string): Intent | null {
  const found = /\b(?:search|grep|find|look)\b(?:\s+(?:the\s+)?(?:project|code|files|repo(?:sitory)?))?(?:\s+for)?\s+(.+)$/i.exec(
    clause,
  )?.[1];
  if (found === undefined) return null;
  const exact = /`([^`]+)`|"([^"]+)"|“([^”]+)”|'([^']+)'/.exec(found);
  const place = /\s+(?:in|under|within)\s+(?:the\s+)?([\w./-]+?)(?:\s+(?:folder|directory))?[.?!]*$/i.exec(found);
  const words = found
    .replace(/\s+(?:in|under|within)\s+.*$/i, '')
    .replace(/^(?:(?:all|any|every|the|a|an|uses|occurrences|mentions|of|word|text|string)\s+)+/i, '')
    .replace(/[.?!]+$/, '');
  const query = exact?.slice(1).find((group) => group !== undefined) ?? words;
  if (query === '') return null;
  const path: JsonObject =
    place?.[1] !== undefined && /[/.]/.test(place[1]) ? { path: place[1] } : place?.[1] === 'src' ? { path: 'src' } : {};
  return one('search the files', 'coder::search', { query, ...path }, `Search for ${query}`);
}

function folder(clause: string): Intent | null {
  const path =
    /\b(?:in|of|under)\s+(?:the\s+)?(?:folder\s+|directory\s+)?([\w.][\w./-]*)(?:\s+(?:folder|directory))?[.?!]*$/i
      .exec(clause)?.[1]
      ?.replace(/\.$/, '') ?? '';
  const place = path === '' || /^(?:this|here|it|the|project|current|repo|repository|folder|directory)$/i.test(path) ? '.' : path;
  if (/\btree\b|\b(?:structure|layout)\b/i.test(clause))
    return one('show the folder tree', 'coder::tree', { path: place }, `Show the tree of ${place}`);
  const lists =
    /^\s*(?:ls|dir)\b|\blist\b.*\b(?:files?|folders?|director(?:y|ies)|entries)\b|\b(?:which|what|show)\b.*\bfiles\b|^\s*list\b/i.test(
      clause,
    );
  return lists ? one('list a folder', 'coder::list-folder', { path: place }, `List ${place}`) : null;
}

function files(clause: string): Intent | null {
  if (
    !/\b(?:read|open|show|print|view|cat|summari[sz]e|explain|describe|look|check|tell|what|inside)\b/i.test(clause) &&
    !/^[^\s]+$/.test(clause)
  )
    return null;
  const paths = pathsIn(clause);
  return paths.length === 0 ? null : read(paths.slice(0, 4));
}

const pathsIn = (clause: string): string[] => {
  const found = clause.match(FILE) ?? [];
  return [...new Set(found.map((path) => (/^(?:README|CHANGELOG|CONTRIBUTING)$/.test(path) ? `${path}.md` : path)))];
};

function unquote(text: string): string {
  const trimmed = text.trim().replace(/[.]$/, '');
  return /^(?:`[^`]*`|"[^"]*"|'[^']*'|“[^”]*”)$/.test(trimmed) ? trimmed.slice(1, -1) : trimmed;
}
