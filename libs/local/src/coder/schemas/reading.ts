import { ref, type Schema } from '#libs/contracts';
import { count, flag, globs, object, path, request, window } from './parts.js';

const readFields: { [field: string]: Schema } = {
  path: { type: ['string', 'null'], description: 'Real path of the file.' },
  content: { type: ['string', 'null'], description: 'Text with its line ends; bytes that are not UTF-8 come as U+FFFD.' },
  size: { type: ['integer', 'null'], description: 'Bytes of the whole file.' },
  mode: { type: ['integer', 'null'], description: 'Permission bits.' },
  mtime: { type: ['integer', 'null'], description: 'Seconds since the epoch.' },
  is_utf8: { type: ['boolean', 'null'] },
  lines_returned: { type: ['integer', 'null'] },
  more_lines: { type: ['boolean', 'null'], description: 'True when the file goes on after what was returned.' },
  total_lines: { type: ['integer', 'null'] },
  revision: { type: ['string', 'null'], description: 'Give it back as expected_revision to write only if nobody else did.' },
};

/** Schemas of the functions that read. */
export const readingSchemas = {
  info: {
    request: request({}, [], {}),
    response: object(
      {
        allowed_roots: { type: 'array', items: { type: 'string' } },
        session_root: { type: ['string', 'null'] },
        non_accessible_globs: { type: 'array', items: { type: 'string' } },
        default_exclude_globs: { type: 'array', items: { type: 'string' } },
        regex_syntax: { type: 'string' },
        budgets: { type: 'object' },
      },
      ['allowed_roots', 'session_root', 'budgets'],
    ),
  },
  readFile: {
    request: request(
      {
        path: { type: ['string', 'null'], maxLength: 4_096, default: null, description: 'One file to read. Either path or paths.' },
        paths: {
          type: ['array', 'null'],
          items: ref('ReadTarget'),
          maxItems: 100,
          default: null,
          description: 'A batch: names of files, or objects with a line range each.',
        },
        ...window,
        max_output_bytes: count(
          1,
          'Bytes of content that may come back; 131072 when left out. A whole file that is longer fails with C213; a line range is cut.',
        ),
      },
      [],
      { path: 'src/main.ts', line_from: 1, line_to: 80, numbered: true },
    ),
    response: object({
      ...readFields,
      results: {
        type: ['array', 'null'],
        items: {
          type: 'object',
          required: ['path', 'success'],
          properties: { ...readFields, success: { type: 'boolean' }, error: ref('EntryError') },
        },
      },
    }),
  },
  listFolder: {
    request: request(
      {
        path: { ...(path('The folder.') as object), default: '.' },
        page: { type: 'integer', minimum: 0, default: 1 },
        page_size: count(1, 'Entries of a page; 100 when left out, at most 1000.'),
      },
      [],
      { path: 'src', page: 1 },
    ),
    response: object(
      {
        path: { type: 'string', description: 'Real path of the folder.' },
        entries: { type: 'array', items: ref('Entry') },
        page: { type: 'integer' },
        page_size: { type: 'integer' },
        total: { type: 'integer' },
        has_more: { type: 'boolean' },
      },
      ['entries', 'has_more', 'page', 'page_size', 'path', 'total'],
    ),
  },
  tree: {
    request: request(
      {
        path: { ...(path('The folder.') as object), default: '.' },
        max_depth: count(0, 'How deep to go; the folder itself is 0. 4 when left out.'),
        per_folder_limit: count(1, 'Children shown of each folder; 50 when left out.'),
        use_default_excludes: flag(true, 'Does not look into .git, node_modules and the like (coder::info lists them).'),
      },
      [],
      { path: '.', max_depth: 3 },
    ),
    response: object({ path: { type: 'string' }, root: ref('TreeNode') }, ['path', 'root']),
  },
  search: {
    request: request(
      {
        query: {
          type: 'string',
          minLength: 1,
          maxLength: 2_000,
          description: 'Text to find, or an RE2 regular expression with regex: true. Matched line by line.',
        },
        path: { ...(path('Folder to search.') as object), default: '.' },
        regex: flag(false, 'Takes query as a regular expression.'),
        ignore_case: flag(false, 'Letters match in either case.'),
        include_globs: globs(
          'Only files that match one of these, e.g. ["*.ts", "src/**"]. Relative to path; a glob without / matches the name.',
        ),
        exclude_globs: globs('Leaves out files and folders that match one of these.'),
        search_content: flag(true, 'Looks into files.'),
        search_paths: flag(true, 'Looks at the names of files and folders.'),
        fuzzy_paths: flag(false, 'Names match when they hold the characters of query in order; the best come first.'),
        respect_gitignore: flag(false, 'Leaves out what the .gitignore files below path say.'),
        use_default_excludes: flag(true, 'Leaves out .git, node_modules and the like (coder::info lists them).'),
        context_lines_before: count(0, 'Lines shown before each match, at most 10.'),
        context_lines_after: count(0, 'Lines shown after each match, at most 10.'),
        max_line_bytes: count(1, 'Longer lines are cut around the match; 512 when left out.'),
        max_matches: count(1, 'Matches of each kind; 1000 when left out.'),
      },
      ['query'],
      { query: 'TODO', include_globs: ['*.ts'], context_lines_after: 2 },
    ),
    response: object(
      {
        path: { type: 'string', description: 'Real path of the folder searched; paths below are relative to it.' },
        content_matches: {
          type: 'array',
          items: {
            type: 'object',
            required: ['path', 'line', 'column', 'text'],
            properties: {
              path: { type: 'string' },
              line: { type: 'integer' },
              column: { type: 'integer' },
              text: { type: 'string' },
              before: { type: ['array', 'null'], items: { type: 'string' } },
              after: { type: ['array', 'null'], items: { type: 'string' } },
            },
          },
        },
        path_matches: {
          type: 'array',
          items: {
            type: 'object',
            required: ['path', 'kind'],
            properties: { path: { type: 'string' }, kind: { enum: ['file', 'dir'], type: 'string' } },
          },
        },
        truncated: { type: 'boolean' },
        truncated_reason: { type: ['string', 'null'] },
      },
      ['content_matches', 'path_matches', 'truncated'],
    ),
  },
};
