import { HarnessCommand, type Program } from '../cli/command.js';
import { Command, Help } from '../cli/decorators.js';
import { EXIT, type ExitCode, usageError } from '../cli/exit.js';
import { SHELLS } from '../input/choices.js';
import { either } from '../input/close.js';
import { completionScript, type Shell } from '../render/completion.js';

/** `completion`: a script that makes a shell complete commands, options and their values. */
@Command({
  name: 'completion',
  arguments: '<shell>',
  description: 'Print the completion script of a shell',
  argsDescription: { shell: 'bash, zsh or fish' },
})
export class CompletionCommand extends HarnessCommand {
  @Help('after')
  examples(): string {
    return '\nExamples:\n  source <(harness-cli completion bash)                      # in ~/.bashrc\n  source <(harness-cli completion zsh)                       # in ~/.zshrc\n  harness-cli completion fish > ~/.config/fish/completions/harness-cli.fish';
  }

  protected execute([shell = '']: string[]): Promise<ExitCode> {
    if (!SHELLS.includes(shell as Shell)) throw usageError(`<shell> must be ${either(SHELLS)}, got ${JSON.stringify(shell)}`);
    const program = this.command.parent as Program;
    this.cli.print(completionScript(shell as Shell, program));
    return Promise.resolve(EXIT.ok);
  }
}
