import { createRequire } from 'node:module';
import type { CommandMetadata, HelpOptions, OptionMetadata } from 'nest-commander';
import { CommandMeta, HelpMeta, OptionMeta } from 'nest-commander/src/constants.js';
import type { Cli } from './cli.js';
import type { CommandClass, Program } from './command.js';

type Commander = { Command: new (name?: string) => Program; Option: new (flags: string, description?: string) => CommanderOption };
interface CommanderOption {
  default(value: unknown): CommanderOption;
  choices(values: string[]): CommanderOption;
}

/** Loads a dependency of nest-commander in the version that it uses itself. */
export function ofNestCommander<T>(name: string): T {
  return createRequire(createRequire(import.meta.url).resolve('nest-commander'))(name) as T;
}

const EXAMPLES = `
Examples:
  harness-cli send "what is this project?"
  harness-cli send "read README.md and sum it up" --allow 'coder::*' 'engine::functions::*'
  git diff | harness-cli send - --session s_review
  harness-cli sessions --status working
  harness-cli doctor

Exit codes: 0 completed, 1 failed, 2 bad usage or input, 3 not reachable or refused, 130 cancelled.`;

/** Gives a parser what all commands share: global options, version, help, and errors that are thrown instead of exits. */
export function configureProgram(program: Program, cli: Cli, version: string, helpTo: 'stdout' | 'stderr' = 'stdout'): void {
  const output = {
    writeOut: (text: string): void => cli[helpTo].write(text),
    // Faults are thrown; what reports them writes them, once.
    writeErr: (): void => undefined,
    getOutHelpWidth: (): number => Math.min(cli.stdout.columns, 120),
    getErrHelpWidth: (): number => Math.min(cli.stderr.columns, 120),
  };
  program
    .name(cli.name)
    .description('A durable agent turn loop: sends a message, watches the turn run, and looks at what is stored.')
    .option('--data-dir <folder>', 'where everything is stored (HARNESS_DATA_DIR, else the XDG data folder)')
    .option('--url <url>', 'the worker or engine at this WebSocket address instead (III_URL); serve: the iii engine to be a worker of')
    .option('--debug', 'show what goes on, and stack traces')
    .version(version, '-V, --version', 'print the version')
    .addHelpText('after', EXAMPLES);
  for (const command of [program, ...program.commands]) {
    command
      .configureOutput(output)
      .configureHelp({
        showGlobalOptions: command !== program,
        sortSubcommands: false,
        ...(cli.io.asWorker === true ? { commandUsage: () => 'harness [options]' } : {}),
      })
      .helpOption('-h, --help', 'show this help')
      .showSuggestionAfterError(true)
      .allowExcessArguments(false)
      .exitOverride();
  }
}

/** Builds the parser from the decorators alone, without the container: enough for help and completion, in a fraction of the time. */
export function lightProgram(
  commands: readonly CommandClass[],
  cli: Cli,
  version: string,
  helpTo: 'stdout' | 'stderr' = 'stdout',
): Program {
  const { Command, Option } = ofNestCommander<Commander>('commander');
  const program = new Command();
  for (const type of commands) {
    const meta = Reflect.getMetadata(CommandMeta, type) as CommandMetadata;
    const command = new Command(meta.name).description(meta.description ?? '');
    for (const argument of (meta.arguments ?? '').split(' ').filter((part) => part !== '')) {
      const described = Object.keys(meta.argsDescription ?? {}).find((key) => argument.includes(key));
      command.argument(argument, described === undefined ? '' : meta.argsDescription?.[described]);
    }
    for (const { option, help, handler } of methodsOf(type)) {
      if (option !== undefined) {
        const added = new Option(option.flags, option.description).default(option.defaultValue);
        if (Array.isArray(option.choices) && option.choices.length > 0) added.choices(option.choices);
        command.addOption(added as Parameters<Program['addOption']>[0]);
      }
      if (help !== undefined) command.addHelpText(help, handler as () => string);
    }
    program.addCommand(command.action(() => undefined));
  }
  configureProgram(program, cli, version, helpTo);
  return program;
}

interface DecoratedMethod {
  option?: OptionMetadata;
  help?: HelpOptions;
  handler: unknown;
}

function methodsOf(type: CommandClass): DecoratedMethod[] {
  const found: DecoratedMethod[] = [];
  for (
    let at: object | null = type.prototype as object;
    at !== null && at !== Object.prototype;
    at = Object.getPrototypeOf(at) as object | null
  ) {
    for (const name of Object.getOwnPropertyNames(at)) {
      const handler: unknown = Object.getOwnPropertyDescriptor(at, name)?.value;
      if (typeof handler !== 'function') continue;
      const option = Reflect.getMetadata(OptionMeta, handler) as OptionMetadata | undefined;
      const help = Reflect.getMetadata(HelpMeta, handler) as HelpOptions | undefined;
      if (option !== undefined || help !== undefined) found.push({ option, help, handler });
    }
  }
  return found;
}
