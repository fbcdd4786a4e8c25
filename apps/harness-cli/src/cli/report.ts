import { CommandMeta } from 'nest-commander/src/constants.js';
import { COMMANDS } from '../commands/index.js';
import { redact } from '../render/redact.js';
import { jsonLine, sanitize } from '../render/sanitize.js';
import type { Cli } from './cli.js';
import { EXIT, type ExitCode } from './exit.js';
import { failureOf } from './failure.js';

/**
 * Tells an error and gives the exit code. As text with what to do about it, on standard error; with --json as one JSON line,
 * which for bad usage goes to standard error too, and otherwise ends what is on standard output. The stack is shown with --debug only.
 */
export function report(error: unknown, cli: Cli, asJson: boolean): ExitCode {
  const failure = failureOf(error, cli.io.env);
  if (failure === null) return cli.exitCode;
  const { exitCode, code, message, hint } = failure;
  const help = exitCode === EXIT.usage && code === 'cli/usage' && hint === undefined ? helpHint(cli) : hint;
  cli.screen.close();
  if (asJson) {
    (exitCode === EXIT.usage ? cli.stderr : cli.stdout).write(
      `${jsonLine({ type: 'error', code, message, ...(help === undefined ? {} : { hint: help }) })}\n`,
    );
  } else {
    cli.stderr.write(`${cli.err.red(cli.err.bold('error:'))} ${message}${code.startsWith('cli/') ? '' : cli.err.dim(` (${code})`)}\n`);
    if (help !== undefined) cli.stderr.write(`${cli.err.dim(help)}\n`);
  }
  if (cli.global.debug === true && error instanceof Error && error.stack !== undefined)
    cli.stderr.write(`${sanitize(redact(error.stack, cli.io.env))}\n`);
  return exitCode;
}

/** Where to read on: the help of the command that was called, or of all. */
function helpHint({ name, argv }: Cli): string {
  const names = COMMANDS.map((type) => (Reflect.getMetadata(CommandMeta, type) as { name: string }).name);
  const called = argv.find((word) => names.includes(word));
  return called === undefined ? `Run \`${name} --help\`, or \`${name} <command> --help\`.` : `Run \`${name} ${called} --help\`.`;
}
