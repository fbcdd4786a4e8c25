import { ref } from '#libs/contracts';
import { flag, object, path, request, text } from './parts.js';

/** Schemas of the functions that write. */
export const editingSchemas = {
  createFile: {
    request: request(
      {
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
              mode: {
                type: 'string',
                pattern: '^0?[0-7]{3}$',
                description: 'Permission bits in octal; "0644" for a new file, and those of the old file when one is replaced.',
              },
              expected_revision: {
                type: ['string', 'null'],
                description: 'Replaces the file only if it still has this revision (from coder::read-file); otherwise C221.',
              },
            },
          },
        },
      },
      ['files'],
      { files: [{ path: 'notes/plan.md', content: '# Plan\n' }] },
    ),
    response: object(
      {
        results: {
          type: 'array',
          items: {
            type: 'object',
            required: ['path', 'success', 'bytes_written'],
            properties: {
              path: { type: 'string' },
              success: { type: 'boolean' },
              bytes_written: { type: 'integer' },
              revision: { type: ['string', 'null'] },
              error: ref('EntryError'),
            },
          },
        },
      },
      ['results'],
    ),
  },
  updateFile: {
    request: request(
      {
        files: {
          type: 'array',
          maxItems: 100,
          items: {
            type: 'object',
            required: ['ops', 'path'],
            properties: {
              path: path('The file to change.'),
              ops: { type: 'array', items: ref('UpdateOp'), maxItems: 500 },
              expected_revision: {
                type: ['string', 'null'],
                description: 'Changes the file only if it still has this revision; otherwise C221.',
              },
            },
          },
        },
      },
      ['files'],
      { files: [{ path: 'src/a.ts', ops: [{ op: 'update_lines', from_line: 3, to_line: 4, content: 'const x = 1;' }] }] },
    ),
    response: object(
      {
        results: {
          type: 'array',
          items: {
            type: 'object',
            required: ['applied', 'echoes', 'echoes_truncated', 'new_line_count', 'path', 'success'],
            properties: {
              path: { type: 'string' },
              success: { type: 'boolean' },
              applied: { type: 'integer' },
              new_line_count: { type: 'integer' },
              echoes: { type: 'array', items: ref('Echo') },
              echoes_truncated: { type: 'boolean' },
              revision: { type: ['string', 'null'] },
              error: ref('EntryError'),
            },
          },
        },
      },
      ['results'],
    ),
  },
};
