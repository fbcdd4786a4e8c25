import { deadline } from '../../confine/deadline.js';
import { type ConfineValues, compileGlobs, errnoOf, type OpenFolder, PathError, type Scope } from '../../confine/index.js';
import { CoderError } from '../errors.js';
import { cutText } from '../text.js';
import { fuzzyScore } from './fuzzy.js';
import { type LineMatcher, literalMatcher, regexMatcher } from './matcher.js';
import { type ContentMatch, searchFile } from './search-file.js';
import { MAX_DEPTH, type WalkEntry, walk } from './walk.js';

export interface SearchRequest {
  query: string;
  path?: string;
  regex?: boolean;
  ignore_case?: boolean;
  include_globs?: string[];
  exclude_globs?: string[];
  search_content?: boolean;
  search_paths?: boolean;
  fuzzy_paths?: boolean;
  respect_gitignore?: boolean;
  use_default_excludes?: boolean;
  context_lines_before?: number | null;
  context_lines_after?: number | null;
  max_line_bytes?: number | null;
  max_matches?: number | null;
}
export interface PathMatch {
  path: string;
  kind: 'file' | 'dir';
}
export interface SearchResult {
  /** Real path of the folder that was searched; the paths of matches are relative to it. */
  path: string;
  content_matches: ContentMatch[];
  path_matches: PathMatch[];
  truncated: boolean;
  /** Why there may be more, for a reader. */
  truncated_reason?: string;
}

export const DEFAULT_MAX_MATCHES = 1_000;
export const MAX_MATCHES = 10_000;
export const DEFAULT_LINE_BYTES = 512;
const MAX_LINE_BYTES = 4_096;
export const MAX_CONTEXT = 10;
/** How long one search may take. */
export const SEARCH_MS = 20_000;
const PATH_BATCH = 256;

/** Searches the names and lines below a folder. */
export async function search(
  scope: Scope,
  values: ConfineValues,
  request: SearchRequest,
  signal: AbortSignal,
  searchMs = SEARCH_MS,
): Promise<SearchResult> {
  if (request.query === '') throw new CoderError('C210', 'query is empty; to list files use coder::list-folder or coder::tree');
  const time = deadline(signal, searchMs);
  const limited = time.signal;
  const ignoreCase = request.ignore_case ?? false;
  const matcher = request.regex === true ? regexMatcher(request.query, ignoreCase, limited) : literalMatcher(request.query, ignoreCase);
  const run = new Search(scope, values, request, matcher, limited);
  try {
    const start = await scope.openFolder(request.path ?? '.');
    try {
      await run.all(start);
    } catch (error) {
      if (!time.passed || signal.aborted) throw error;
      run.stopped = `the search took more than ${searchMs} ms; narrow it with path or include_globs`;
    } finally {
      await start.close();
    }
    return run.result(start.path);
  } finally {
    time.end();
    await matcher.close();
  }
}

class Search {
  /** Why the search ended early. */
  stopped: string | undefined;
  /** What was passed over without ending the search. */
  private partial: string | undefined;
  private readonly content: ContentMatch[] = [];
  private readonly paths: PathMatch[] = [];
  private readonly fuzzy: (PathMatch & { score: number })[] = [];
  private waiting: PathMatch[] = [];
  private readonly included: (path: string) => boolean;
  private readonly excluded: (path: string) => boolean;
  private readonly maxMatches: number;
  private bytesLeft: number;

  constructor(
    private readonly scope: Scope,
    values: ConfineValues,
    private readonly request: SearchRequest,
    private readonly matcher: LineMatcher,
    private readonly signal: AbortSignal,
  ) {
    const include = request.include_globs ?? [];
    this.included = include.length === 0 ? () => true : compileGlobs(include);
    this.excluded = compileGlobs(request.exclude_globs ?? []);
    this.maxMatches = Math.min(Math.max(1, request.max_matches ?? DEFAULT_MAX_MATCHES), MAX_MATCHES);
    this.bytesLeft = values.max_output_bytes;
  }

  async all(start: OpenFolder): Promise<void> {
    const { use_default_excludes, respect_gitignore } = this.request;
    const options = {
      useDefaultExcludes: use_default_excludes ?? true,
      respectGitignore: respect_gitignore ?? false,
      excluded: this.excluded,
      signal: this.signal,
      tooDeep: (path: string) => {
        this.partial ??= `what is below ${cutText(path, 200)} lies too deep (more than ${MAX_DEPTH} folders)`;
      },
    };
    for await (const entry of walk(this.scope, start, options)) {
      if (entry.kind !== 'dir' && !this.included(entry.path)) continue;
      await this.lookAtPath(entry);
      if (entry.kind === 'file' && (this.request.search_content ?? true)) await this.lookInside(entry);
      if (this.stopped !== undefined) break;
    }
    await this.matchWaiting();
  }

  result(path: string): SearchResult {
    const ranked = this.fuzzy.sort((a, b) => a.score - b.score).slice(0, this.maxMatches);
    const path_matches = [...this.paths, ...ranked.map(({ path: found, kind }) => ({ path: found, kind }))];
    const reason = this.stopped ?? this.partial;
    const truncated = reason === undefined ? { truncated: false } : { truncated: true, truncated_reason: reason };
    return { path, content_matches: this.content, path_matches, ...truncated };
  }

  private async lookAtPath(entry: WalkEntry): Promise<void> {
    if (this.request.search_paths === false) return;
    const match: PathMatch = { path: entry.path, kind: entry.kind === 'dir' ? 'dir' : 'file' };
    if (this.request.fuzzy_paths === true) {
      const score = fuzzyScore(this.request.query, entry.path);
      if (score !== null && this.fuzzy.length < MAX_MATCHES) this.fuzzy.push({ ...match, score });
      return;
    }
    if (this.waiting.push(match) >= PATH_BATCH) await this.matchWaiting();
  }

  /** A path matches when the match reaches into its last part; otherwise a folder's name would match all that it holds. */
  private async matchWaiting(): Promise<void> {
    const batch = this.waiting;
    this.waiting = [];
    if (batch.length === 0) return;
    for (const [index, , end] of await this.matcher.match(batch.map((match) => match.path))) {
      const match = batch[index];
      if (match === undefined || end <= match.path.lastIndexOf('/')) continue;
      if (this.paths.length >= this.maxMatches) return this.stop(`there are more than ${this.maxMatches} matching paths`);
      this.paths.push(match);
    }
  }

  private async lookInside(entry: WalkEntry): Promise<void> {
    try {
      const file = await this.scope.openIn(entry.folder, entry.name);
      try {
        const whole = await searchFile(file, entry.path, this.matcher, {
          before: Math.min(this.request.context_lines_before ?? 0, MAX_CONTEXT),
          after: Math.min(this.request.context_lines_after ?? 0, MAX_CONTEXT),
          maxLineBytes: Math.min(Math.max(16, this.request.max_line_bytes ?? DEFAULT_LINE_BYTES), MAX_LINE_BYTES),
          signal: this.signal,
          found: (match) => this.take(match),
        });
        if (!whole) this.partial ??= `a line of ${entry.path} is too long to be searched to its end`;
      } finally {
        await file.handle.close();
      }
    } catch (error) {
      // A file that went away, or that may not be read, must not end the search of all others.
      if (!(error instanceof PathError) && errnoOf(error) === undefined) throw error;
    }
  }

  private take(match: ContentMatch): boolean {
    const size =
      Buffer.byteLength(match.text) +
      [...(match.before ?? []), ...(match.after ?? [])].reduce((sum, line) => sum + Buffer.byteLength(line), 0);
    if (this.content.length >= this.maxMatches) this.stop(`there are more than ${this.maxMatches} matching lines`);
    else if (size > this.bytesLeft) this.stop('the text of the matches is longer than one answer may be; narrow the query');
    if (this.stopped !== undefined) return false;
    this.bytesLeft -= size;
    this.content.push(match);
    return true;
  }

  private stop(reason: string): void {
    this.stopped ??= reason;
  }
}
