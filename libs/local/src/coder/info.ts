import type { ConfineValues, Scope } from '../confine/index.js';
import { DEFAULT_EXCLUDES } from './excludes.js';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from './list-folder.js';
import { DEFAULT_LINE_BYTES, DEFAULT_MAX_MATCHES, MAX_CONTEXT, MAX_MATCHES, SEARCH_MS } from './search/search.js';
import { DEFAULT_DEPTH, DEFAULT_PER_FOLDER, MAX_NODES } from './tree.js';

/** Where the coder functions may go and what they may return. */
export const coderInfo = (scope: Scope, values: ConfineValues): { [key: string]: unknown } => ({
  allowed_roots: [scope.root],
  session_root: scope.base,
  non_accessible_globs: values.non_accessible_globs,
  default_exclude_globs: DEFAULT_EXCLUDES.map((name) => `**/${name}`),
  regex_syntax: 'RE2 (no look-around, no back-references)',
  budgets: {
    max_output_bytes: values.max_output_bytes,
    batch_read_budget_bytes: values.max_batch_bytes,
    max_read_bytes: values.max_file_bytes,
    max_write_bytes: values.max_file_bytes,
    list_default_page_size: DEFAULT_PAGE_SIZE,
    list_max_page_size: MAX_PAGE_SIZE,
    tree_default_depth: DEFAULT_DEPTH,
    tree_per_folder_limit: DEFAULT_PER_FOLDER,
    tree_max_nodes: MAX_NODES,
    search_default_max_matches: DEFAULT_MAX_MATCHES,
    search_max_matches: MAX_MATCHES,
    search_default_max_line_bytes: DEFAULT_LINE_BYTES,
    search_max_context_lines: MAX_CONTEXT,
    search_timeout_ms: SEARCH_MS,
  },
});
