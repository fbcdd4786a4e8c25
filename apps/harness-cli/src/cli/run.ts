import { readFileSync } from 'node:fs';
import { CompletionCommand } from '../commands/completion.command.js';
import { COMMANDS } from '../commands/index.js';
import { Cli, type CliIo } from './cli.js';
import { CliError, EXIT, type ExitCode, usageError } from './exit.js';

/** Runs the CLI once and gives its exit code. Everything that fails is reported here, and only here. */
export async function runCli(argv: readonly string[], io: CliIo): Promise<ExitCode> {
  const cli = new Cli(io, 'harness-cli', argv);
  const own = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv;
  cli.global = { debug: own.includes('--debug') };
  try {
    await dispatch(argv, own, cli);
    await cli.flushed();
    if (cli.stdout.failure !== null) {
      throw new CliError(
        EXIT.unreachable,
        'cli/output',
        `standard output cannot be written: ${cli.stdout.failure.message}`,
        'What was answered is stored: `harness-cli show` prints it again.',
      );
    }
  } catch (error) {
    const { report } = await import('./report.js');
    cli.exitCode = report(error, cli, own.includes('--json'));
  }
  await cli.flushed();
  return cli.exitCode;
}

async function dispatch(argv: readonly string[], own: readonly string[], cli: Cli): Promise<void> {
  const first = argv[0];
  if (first === '--version' || first === '-V') {
    cli.print(version());
    return;
  }
  const wantsHelp = first === undefined || first === 'help' || own.includes('--help') || own.includes('-h');
  if (wantsHelp || first === 'completion') {
    const { lightProgram } = await import('./program.js');
    const program = lightProgram(COMMANDS, cli, version(), first === undefined ? 'stderr' : 'stdout');
    if (first === undefined) {
      program.outputHelp();
      cli.exitCode = EXIT.usage;
      return;
    }
    const command = program.commands.find((known) => known.name() === 'completion');
    if (command !== undefined) {
      const completion = new CompletionCommand(cli).setCommand(command);
      command.action(() => completion.run(command.args, command.opts()));
    }
    if (first === 'help' && argv[1] !== undefined && program.commands.every((known) => known.name() !== argv[1]))
      throw usageError(`unknown command '${argv[1]}'`);
    await program.parseAsync(argv, { from: 'user' }).catch((error: unknown) => {
      if ((error as { code?: unknown }).code !== 'commander.helpDisplayed' && (error as { code?: unknown }).code !== 'commander.help')
        throw error;
    });
    return;
  }
  const { runInContainer } = await import('./container.js');
  await runInContainer(COMMANDS, cli, version(), argv);
}

/** The version in package.json, which is the first one above this file, in the sources as in the build. */
function version(): string {
  for (let up = '../'; up.length < 30; up += '../') {
    try {
      const found = JSON.parse(readFileSync(new URL(`${up}package.json`, import.meta.url), 'utf8')) as { version?: unknown };
      if (typeof found.version === 'string') return found.version;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return '0.0.0';
}
