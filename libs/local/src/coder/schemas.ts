import { ref, root, type Schema } from '#libs/contracts';

const path = (what: string): Schema => ({
  type: 'string',
  maxLength: 4_096,
  description: `${what} Relative to the session root, or absolute inside an allowed root (coder::info names both).`,
});
const flag = (value: boolean, description: string): Schema => ({ type: 'boolean', default: value, description });
const count = (minimum: number, description: string): Schema => ({ type: ['integer', 'null'], minimum, default: null, description });
const globs = (description: string): Schema => ({ type: 'array', items: { type: 'string', maxLength: 1_000 }, maxItems: 64, default: [], description });

const fsScope: Schema = {
  type: ['object', 'null'],
  description: 'Set by the harness to narrow a call; leave it out.',
  properties: { root: { type: ['string', 'null'] }, boundary: { type: ['string', 'null'] }, grants: { type: ['array', 'null'] } },
};

const window = {
  line_from: count(1, 'First line, 1-based.'),
  line_to: count(1, 'Last line, inclusive. Leave it out to read to the end, as far as one answer may be long.'),
  numbered: flag(false, 'Puts `<line>→` before each line; these are the numbers that coder::update-file takes.'),
  stat: flag(false, 'Only tells size, mode, mtime, line count and revision; content is null. Not with a line range or numbered.'),
};

const pool: { [name: string]: Schema } = {
  ReadTarget: {
    anyOf: [
      { type: 'string', maxLength: 4_096, description: 'A whole file.' },
      { type: 'object', required: ['path'], properties: { path: path('The file.'), ...window } },
    ],
  },
  EntryError: {
    type: 'object',
    required: ['code', 'message'],
    properties: {
      code: { type: 'string', description: 'C210 bad input, C211 missing or denied, C213 exists or over budget, C216 disk error, C221 stale revision.' },
      message: { type: 'string', description: 'What is wrong and what to do about it.' },
    },
  },
  UpdateOp: {
    oneOf: [
      op('insert', { at_line: line('The new lines go before this line; line count + 1 appends.'), content: text('Lines to insert.') }),
      op('remove', { from_line: line('First line to remove.'), to_line: line('Last line to remove.') }),
      op('update_lines', { from_line: line('First line to replace.'), to_line: line('Last line to replace.'), content: text('What stands there instead.') }),
      op('replace', { pattern: { type: 'string', minLength: 1, maxLength: 10_000, description: 'RE2 regular expression over the whole text; write (?m) to let ^ and $ match at each line.' },
        replacement: text('$1, ${1} and ${name} refer to groups; a literal $ is written $$.') }, {
        ignore_case: flag(false, 'Letters match in either case.'),
        dot_matches_newline: flag(false, 'Lets `.` cross lines, so that two short anchors joined by .*? reach over a block.'),
        expect_matches: count(0, 'The file fails and stays as it is when the pattern matches another number of times. Use 1 for one exact place.'),
      }),
    ],
  },
  Echo: {
    type: 'object',
    required: ['op_index', 'from_line', 'lines'],
    properties: {
      op_index: { type: 'integer' },
      from_line: { type: 'integer', description: 'Line number of the first echoed line after all ops.' },
      lines: { type: 'array', items: { type: 'string' } },
      elided: { type: ['integer', 'null'], description: 'Lines left out in the middle.' },
      total_replacements: { type: ['integer', 'null'], description: 'On replace ops: matches replaced in the whole file; at most 5 of them are echoed.' },
    },
  },
  Entry: {
    type: 'object',
    required: ['name', 'kind', 'size', 'mtime', 'non_accessible'],
    properties: {
      name: { type: 'string' },
      kind: { enum: ['file', 'dir', 'symlink', 'other'], type: 'string' },
      size: { type: 'integer' },
      mtime: { type: 'integer', description: 'Seconds since the epoch.' },
      non_accessible: { type: 'boolean', description: 'True when it may be neither read nor written.' },
    },
  },
  TreeNode: {
    type: 'object',
    required: ['name', 'kind', 'size', 'mtime', 'non_accessible'],
    properties: {
      name: { type: 'string' },
      kind: { enum: ['file', 'dir', 'symlink', 'other'], type: 'string' },
      size: { type: 'integer' },
      mtime: { type: 'integer' },
      non_accessible: { type: 'boolean' },
      children: { type: ['array', 'null'], items: ref('TreeNode') },
      truncated: { type: ['object', 'null'], description: 'Why children are missing: {reason, shown, total, hint}.' },
    },
  },
};

function line(description: string): Schema {
  return { type: 'integer', minimum: 1, description };
}
function text(description: string): Schema {
  return { type: 'string', description };
}
function op(name: string, required: { [field: string]: Schema }, optional: { [field: string]: Schema } = {}): Schema {
  return {
    type: 'object',
    required: ['op', ...Object.keys(required)],
    properties: { op: { enum: [name], type: 'string' }, ...required, ...optional },
  };
}
const object = (properties: { [field: string]: Schema }, required: string[] = [], extra: object = {}): Schema =>
  root(pool, { type: 'object', properties, required, ...extra });
const request = (properties: { [field: string]: Schema }, required: string[], example: object): Schema =>
  object({ ...properties, fs_scope: fsScope }, required, { examples: [example] });

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

/** Request and response schemas of the coder functions. */
export const coderSchemas = {
  info: {
    request: request({}, [], {}),
    response: object({
      allowed_roots: { type: 'array', items: { type: 'string' } },
      session_root: { type: ['string', 'null'] },
      non_accessible_globs: { type: 'array', items: { type: 'string' } },
      default_exclude_globs: { type: 'array', items: { type: 'string' } },
      regex_syntax: { type: 'string' },
      budgets: { type: 'object' },
    }, ['allowed_roots', 'session_root', 'budgets']),
  },
  readFile: {
    request: request({
      path: { type: ['string', 'null'], maxLength: 4_096, default: null, description: 'One file to read. Either path or paths.' },
      paths: { type: ['array', 'null'], items: ref('ReadTarget'), maxItems: 100, default: null, description: 'A batch: names of files, or objects with a line range each.' },
      ...window,
      max_output_bytes: count(1, 'Bytes of content that may come back; 131072 when left out. A whole file that is longer fails with C213; a line range is cut.'),
    }, [], { path: 'src/main.ts', line_from: 1, line_to: 80, numbered: true }),
    response: object({
      ...readFields,
      results: { type: ['array', 'null'], items: { type: 'object', required: ['path', 'success'], properties: { ...readFields, success: { type: 'boolean' }, error: ref('EntryError') } } },
    }),
  },
  listFolder: {
    request: request({
      path: { ...(path('The folder.') as object), default: '.' },
      page: { type: 'integer', minimum: 0, default: 1 },
      page_size: count(1, 'Entries of a page; 100 when left out, at most 1000.'),
    }, [], { path: 'src', page: 1 }),
    response: object({
      path: { type: 'string', description: 'Real path of the folder.' },
      entries: { type: 'array', items: ref('Entry') },
      page: { type: 'integer' },
      page_size: { type: 'integer' },
      total: { type: 'integer' },
      has_more: { type: 'boolean' },
    }, ['entries', 'has_more', 'page', 'page_size', 'path', 'total']),
  },
  tree: {
    request: request({
      path: { ...(path('The folder.') as object), default: '.' },
      max_depth: count(0, 'How deep to go; the folder itself is 0. 4 when left out.'),
      per_folder_limit: count(1, 'Children shown of each folder; 50 when left out.'),
      use_default_excludes: flag(true, 'Does not look into .git, node_modules and the like (coder::info lists them).'),
    }, [], { path: '.', max_depth: 3 }),
    response: object({ path: { type: 'string' }, root: ref('TreeNode') }, ['path', 'root']),
  },
  search: {
    request: request({
      query: { type: 'string', minLength: 1, maxLength: 2_000, description: 'Text to find, or an RE2 regular expression with regex: true. Matched line by line.' },
      path: { ...(path('Folder to search.') as object), default: '.' },
      regex: flag(false, 'Takes query as a regular expression.'),
      ignore_case: flag(false, 'Letters match in either case.'),
      include_globs: globs('Only files that match one of these, e.g. ["*.ts", "src/**"]. Relative to path; a glob without / matches the name.'),
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
    }, ['query'], { query: 'TODO', include_globs: ['*.ts'], context_lines_after: 2 }),
    response: object({
      path: { type: 'string', description: 'Real path of the folder searched; paths below are relative to it.' },
      content_matches: {
        type: 'array',
        items: {
          type: 'object',
          required: ['path', 'line', 'column', 'text'],
          properties: {
            path: { type: 'string' }, line: { type: 'integer' }, column: { type: 'integer' }, text: { type: 'string' },
            before: { type: ['array', 'null'], items: { type: 'string' } }, after: { type: ['array', 'null'], items: { type: 'string' } },
          },
        },
      },
      path_matches: { type: 'array', items: { type: 'object', required: ['path', 'kind'], properties: { path: { type: 'string' }, kind: { enum: ['file', 'dir'], type: 'string' } } } },
      truncated: { type: 'boolean' },
      truncated_reason: { type: ['string', 'null'] },
    }, ['content_matches', 'path_matches', 'truncated']),
  },
  createFile: {
    request: request({
      files: {
        type: 'array',
        maxItems: 100,
        items: {
          type: 'object',
          required: ['content', 'path'],
          properties: {
            path: path('The file to write.'),
            content: text('The whole content.'),
            overwrite: flag(false, 'Replaces a file that is there. Without it such a file fails with C213.'),
            parents: flag(true, 'Makes missing folders.'),
            mode: { type: 'string', pattern: '^[0-7]{3,4}$', description: 'Permission bits in octal; "0644" for a new file, and those of the old file when one is replaced.' },
            expected_revision: { type: ['string', 'null'], description: 'Replaces the file only if it still has this revision (from coder::read-file); otherwise C221.' },
          },
        },
      },
    }, ['files'], { files: [{ path: 'notes/plan.md', content: '# Plan\n' }] }),
    response: object({
      results: {
        type: 'array',
        items: {
          type: 'object',
          required: ['path', 'success', 'bytes_written'],
          properties: { path: { type: 'string' }, success: { type: 'boolean' }, bytes_written: { type: 'integer' }, revision: { type: ['string', 'null'] }, error: ref('EntryError') },
        },
      },
    }, ['results']),
  },
  updateFile: {
    request: request({
      files: {
        type: 'array',
        maxItems: 100,
        items: {
          type: 'object',
          required: ['ops', 'path'],
          properties: {
            path: path('The file to change.'),
            ops: { type: 'array', items: ref('UpdateOp'), maxItems: 500 },
            expected_revision: { type: ['string', 'null'], description: 'Changes the file only if it still has this revision; otherwise C221.' },
          },
        },
      },
    }, ['files'], { files: [{ path: 'src/a.ts', ops: [{ op: 'update_lines', from_line: 3, to_line: 4, content: 'const x = 1;' }] }] }),
    response: object({
      results: {
        type: 'array',
        items: {
          type: 'object',
          required: ['applied', 'echoes', 'echoes_truncated', 'new_line_count', 'path', 'success'],
          properties: {
            path: { type: 'string' }, success: { type: 'boolean' }, applied: { type: 'integer' }, new_line_count: { type: 'integer' },
            echoes: { type: 'array', items: ref('Echo') }, echoes_truncated: { type: 'boolean' }, revision: { type: ['string', 'null'] }, error: ref('EntryError'),
          },
        },
      },
    }, ['results']),
  },
};
