import { ref, root, type Schema } from '#libs/contracts';

/** A path below the root. */
export const path = (what: string): Schema => ({
  type: 'string',
  maxLength: 4_096,
  description: `${what} Relative to the session root, or absolute inside an allowed root (coder::info names both).`,
});
/** A switch with its default. */
export const flag = (value: boolean, description: string): Schema => ({ type: 'boolean', default: value, description });
/** A whole number that may be left out. */
export const count = (minimum: number, description: string): Schema => ({ type: ['integer', 'null'], minimum, default: null, description });
/** A list of globs. */
export const globs = (description: string): Schema => ({
  type: 'array',
  items: { type: 'string', maxLength: 1_000 },
  maxItems: 64,
  default: [],
  description,
});

const fsScope: Schema = {
  type: ['object', 'null'],
  description: 'Set by the harness to narrow a call; leave it out.',
  properties: { root: { type: ['string', 'null'] }, boundary: { type: ['string', 'null'] }, grants: { type: ['array', 'null'] } },
};

/** Which part of a file to read. */
export const window = {
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
      code: {
        type: 'string',
        description: 'C210 bad input, C211 missing or denied, C213 exists or over budget, C216 disk error, C221 stale revision.',
      },
      message: { type: 'string', description: 'What is wrong and what to do about it.' },
    },
  },
  UpdateOp: {
    oneOf: [
      op('insert', { at_line: line('The new lines go before this line; line count + 1 appends.'), content: text('Lines to insert.') }),
      op('remove', { from_line: line('First line to remove.'), to_line: line('Last line to remove.') }),
      op('update_lines', {
        from_line: line('First line to replace.'),
        to_line: line('Last line to replace.'),
        content: text('What stands there instead.'),
      }),
      op(
        'replace',
        {
          pattern: {
            type: 'string',
            minLength: 1,
            maxLength: 10_000,
            description: 'RE2 regular expression over the whole text; write (?m) to let ^ and $ match at each line.',
          },
          replacement: text('$1 and $name refer to groups, also with braces around the number or name; a literal $ is written $$.'),
        },
        {
          ignore_case: flag(false, 'Letters match in either case.'),
          dot_matches_newline: flag(false, 'Lets `.` cross lines, so that two short anchors joined by .*? reach over a block.'),
          expect_matches: count(
            0,
            'The file fails and stays as it is when the pattern matches another number of times. Use 1 for one exact place.',
          ),
        },
      ),
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
      total_replacements: {
        type: ['integer', 'null'],
        description: 'On replace ops: matches replaced in the whole file; at most 5 of them are echoed.',
      },
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
/** A text. */
export function text(description: string): Schema {
  return { type: 'string', description };
}
function op(name: string, required: { [field: string]: Schema }, optional: { [field: string]: Schema } = {}): Schema {
  return {
    type: 'object',
    required: ['op', ...Object.keys(required)],
    properties: { op: { enum: [name], type: 'string' }, ...required, ...optional },
  };
}
/** A published schema with the definitions that it uses. */
export const object = (properties: { [field: string]: Schema }, required: string[] = [], extra: object = {}): Schema =>
  root(pool, { type: 'object', properties, required, ...extra });
/** A request: it also takes the scope that a harness stamps on it, and shows an example. */
export const request = (properties: { [field: string]: Schema }, required: string[], example: object): Schema =>
  object({ ...properties, fs_scope: fsScope }, required, { examples: [example] });
