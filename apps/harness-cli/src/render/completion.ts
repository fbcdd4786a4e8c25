import type { Program } from '../cli/command.js';

export type Shell = 'bash' | 'zsh' | 'fish';

interface OptionSpec {
  long: string;
  short?: string;
  takesValue: boolean;
  values: readonly string[];
  description: string;
}
interface CommandSpec {
  name: string;
  description: string;
  options: OptionSpec[];
  values: readonly string[];
}

/** The script that makes `shell` complete the commands, options and fixed values of `program`. */
export function completionScript(shell: Shell, program: Program): string {
  const name = program.name();
  const globals = optionsOf(program);
  const commands = program.commands.map((command) => ({
    name: command.name(),
    description: command.description(),
    options: [...optionsOf(command), ...globals, HELP],
    values: command.name() === 'completion' ? ['bash', 'zsh', 'fish'] : [],
  }));
  switch (shell) {
    case 'bash':
      return bash(name, commands, globals);
    case 'zsh':
      return zsh(name, commands, globals);
    case 'fish':
      return fish(name, commands, globals);
    default:
      throw new Error(`unknown shell ${String(shell satisfies never)}`);
  }
}

const HELP: OptionSpec = { long: '--help', short: '-h', takesValue: false, values: [], description: 'show help' };

const optionsOf = (program: Program): OptionSpec[] =>
  program.options.flatMap((option) =>
    option.long == null
      ? []
      : [
          {
            long: option.long,
            ...(option.short == null ? {} : { short: option.short }),
            takesValue: option.required || option.optional,
            values: option.argChoices ?? [],
            description: option.description,
          },
        ],
  );

const names = ({ long, short }: OptionSpec): string[] => (short === undefined ? [long] : [short, long]);
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

function bash(name: string, commands: readonly CommandSpec[], globals: readonly OptionSpec[]): string {
  const fn = `_${name.replaceAll('-', '_')}`;
  const valued = uniqueOptions(commands).filter((option) => option.takesValue);
  const withValues = valued
    .filter((option) => option.values.length > 0)
    .map((option) => `    ${names(option).join('|')}) COMPREPLY=($(compgen -W ${quote(option.values.join(' '))} -- "$cur")); return ;;`);
  return `# bash completion of ${name}
${fn}() {
  local cur prev command word i
  cur=\${COMP_WORDS[COMP_CWORD]}
  prev=\${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
  case $prev in
${withValues.join('\n')}
    --data-dir) compopt -o dirnames 2>/dev/null; COMPREPLY=($(compgen -d -- "$cur")); return ;;
    ${valued
      .filter((option) => option.values.length === 0 && option.long !== '--data-dir')
      .flatMap(names)
      .join('|')}) compopt -o default 2>/dev/null; return ;;
  esac
  command=
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    case $word in ${commands.map((command) => command.name).join('|')}) command=$word; break ;; esac
  done
  case $command in
    '') COMPREPLY=($(compgen -W ${quote([...commands.map((command) => command.name), ...globals.map((option) => option.long), '--help'].join(' '))} -- "$cur")) ;;
${commands.map((command) => `    ${command.name}) COMPREPLY=($(compgen -W ${quote([...command.values, ...command.options.map((option) => option.long)].join(' '))} -- "$cur")) ;;`).join('\n')}
  esac
}
complete -F ${fn} ${name}`;
}

function uniqueOptions(commands: readonly CommandSpec[]): OptionSpec[] {
  const found = new Map<string, OptionSpec>();
  for (const option of commands.flatMap((command) => command.options)) {
    const before = found.get(option.long);
    if (before === undefined || before.values.length === 0) found.set(option.long, option);
  }
  return [...found.values()];
}

function zsh(name: string, commands: readonly CommandSpec[], globals: readonly OptionSpec[]): string {
  const text = (of: string): string => of.replace(/[[\]:]/g, '\\$&');
  const spec = (option: OptionSpec): string[] =>
    names(option).map((flag) => {
      const action =
        option.long === '--data-dir'
          ? ':folder:_files -/'
          : option.values.length > 0
            ? `:value:(${option.values.join(' ')})`
            : option.takesValue
              ? ':value:_default'
              : '';
      return quote(`*${flag}[${text(option.description)}]${action}`);
    });
  const specs = (options: readonly OptionSpec[]): string => options.flatMap(spec).join(' \\\n        ');
  return `#compdef ${name}
_${name.replaceAll('-', '_')}() {
  local -a commands=(
${commands.map((command) => `    ${quote(`${command.name}:${text(command.description)}`)}`).join('\n')}
  )
  local context state state_descr line
  typeset -A opt_args
  _arguments -C \\
        ${specs([...globals, HELP])} \\
        '1: :->command' '*:: :->rest'
  case $state in
    command) _describe command commands ;;
    rest)
      case $line[1] in
${commands.map((command) => `      ${command.name}) _arguments ${specs(command.options)}${command.values.length > 0 ? ` '1:value:(${command.values.join(' ')})'` : ''} ;;`).join('\n')}
      esac ;;
  esac
}
if [ "$funcstack[1]" = "_${name.replaceAll('-', '_')}" ]; then _${name.replaceAll('-', '_')} "$@"; else compdef _${name.replaceAll('-', '_')} ${name}; fi`;
}

function fish(name: string, commands: readonly CommandSpec[], globals: readonly OptionSpec[]): string {
  const line = (option: OptionSpec, condition: string): string =>
    [
      `complete -c ${name} -n ${quote(condition)}`,
      ...(option.short === undefined ? [] : [`-s ${option.short.slice(1)}`]),
      `-l ${option.long.slice(2)}`,
      ...(option.values.length > 0
        ? [`-x -a ${quote(option.values.join(' '))}`]
        : option.long === '--data-dir'
          ? ["-x -a '(__fish_complete_directories)'"]
          : option.takesValue
            ? ['-r']
            : []),
      `-d ${quote(option.description)}`,
    ].join(' ');
  return [
    `# fish completion of ${name}`,
    `complete -c ${name} -f`,
    ...commands.map((command) => `complete -c ${name} -n __fish_use_subcommand -a ${command.name} -d ${quote(command.description)}`),
    ...[...globals, HELP].map((option) => line(option, '__fish_use_subcommand')),
    ...commands.flatMap((command) => [
      ...command.options.map((option) => line(option, `__fish_seen_subcommand_from ${command.name}`)),
      ...(command.values.length > 0
        ? [`complete -c ${name} -n ${quote(`__fish_seen_subcommand_from ${command.name}`)} -a ${quote(command.values.join(' '))}`]
        : []),
    ]),
  ].join('\n');
}
