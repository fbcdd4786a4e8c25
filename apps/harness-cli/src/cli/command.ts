import type { Cli, GlobalOptions } from './cli.js';
import { CommandRunner } from './decorators.js';
import type { ExitCode } from './exit.js';

/** Parsed options of a command, by their long name in camelCase. */
export type ParsedOptions = Readonly<Record<string, unknown>>;

/** A command of the CLI. It says how the process exits by what `execute` returns; what it throws is reported in one place. */
export abstract class HarnessCommand extends CommandRunner {
  constructor(protected readonly cli: Cli) {
    super();
  }

  /** Called by the parser. */
  override async run(args: string[], options: ParsedOptions = {}): Promise<void> {
    const { dataDir, url, debug } = this.command.optsWithGlobals<GlobalOptions>();
    this.cli.global = { dataDir, url, debug };
    this.cli.exitCode = await this.execute(args, options);
  }

  protected abstract execute(args: string[], options: ParsedOptions): Promise<ExitCode>;
}

/** Class of a command. */
export type CommandClass = new (cli: Cli) => HarnessCommand;
/** Commander's own command, in the version that the command framework brings. */
export type Program = Parameters<CommandRunner['setCommand']>[0];
