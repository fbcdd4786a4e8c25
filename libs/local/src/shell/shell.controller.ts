import { Controller, Inject } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import type { Schema } from '#libs/contracts';
import { IiiFunction, type InvocationContext } from '#libs/iii';
import type { CommandResult } from './command.js';
import { ShellError } from './errors.js';
import { type ExecRequest, ShellService } from './shell.service.js';

const request: Schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  required: ['command'],
  examples: [{ command: 'npm test -- --run src/a.spec.ts', timeout_ms: 60_000 }],
  properties: {
    command: { type: 'string', minLength: 1, description: 'A command line for /bin/sh, or the program alone when args is given.' },
    args: {
      type: ['array', 'null'],
      items: { type: 'string' },
      default: null,
      description: 'Runs the program with exactly these arguments and no shell.',
    },
    cwd: { type: ['string', 'null'], default: null, description: 'Folder to run in, inside the root; the root when left out.' },
    env: {
      type: ['object', 'null'],
      additionalProperties: { type: 'string' },
      default: null,
      description: 'Variables to add to a small default environment.',
    },
    stdin: { type: ['string', 'null'], default: null, description: 'Text for the standard input; empty when left out.' },
    timeout_ms: {
      type: ['integer', 'null'],
      minimum: 1,
      default: 10_000,
      description: 'The command is ended after this time; at most 120000.',
    },
    target: {
      type: ['object', 'null'],
      properties: { kind: { type: 'string' }, sandbox_id: { type: 'string' } },
      description: 'Not available here.',
    },
    fs_scope: { type: ['object', 'null'], description: 'Set by the harness to narrow a call; leave it out.' },
  },
};
const response: Schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  required: ['stdout', 'stderr', 'exit_code', 'timed_out', 'duration_ms', 'stdout_truncated', 'stderr_truncated'],
  properties: {
    stdout: {
      type: 'string',
      description: 'At most 1 MiB: the beginning and the end, with a line between them that says how much is left out.',
    },
    stderr: { type: 'string' },
    exit_code: { type: ['integer', 'null'], description: 'Null when a signal ended the command.' },
    signal: { type: ['string', 'null'] },
    timed_out: { type: 'boolean' },
    duration_ms: { type: 'integer' },
    stdout_truncated: { type: 'boolean' },
    stderr_truncated: { type: 'boolean' },
  },
};

/** The `shell::*` functions. */
@Controller()
export class ShellController {
  constructor(@Inject(ShellService) private readonly shell: ShellService) {}

  @IiiFunction({
    id: 'shell::exec',
    description:
      'Runs a command and returns its output and exit code. Everything that it started is ended with it; it has no terminal and sees no secrets of this program. ' +
      'A non-zero exit code is a result, not an error. Examples: {"command": "git status --short"}; {"command": "node", "args": ["-e", "console.log(1)"], "timeout_ms": 5000}.',
    request,
    response,
    invalid: (detail) => new ShellError('S210', detail),
  })
  exec(@Payload() payload: ExecRequest, @Ctx() context: InvocationContext): Promise<CommandResult> {
    return this.shell.exec(payload, context.signal);
  }
}
