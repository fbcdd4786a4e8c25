import { HarnessCommand, type ParsedOptions } from '../cli/command.js';
import { Command, Help, Option } from '../cli/decorators.js';
import type { ExitCode } from '../cli/exit.js';

/** `approve`: lets a call that waits go on. */
@Command({
  name: 'approve',
  arguments: '<session> <call>',
  description: 'Let a call that waits for an approval go on',
  argsDescription: { session: 'the session id', call: 'the id of the call' },
})
export class ApproveCommand extends HarnessCommand {
  @Option({ flags: '--always', description: 'let every later call of the function pass in this session and its sub-agents' })
  always(): boolean {
    return true;
  }
  @Option({ flags: '--json', description: 'print JSON' })
  json(): boolean {
    return true;
  }
  @Help('after')
  examples(): string {
    return '\nThe turn goes on where somebody waits for it, or in a worker.\n\nExamples:\n  harness-cli approvals\n  harness-cli approve s_review fc_1 --always';
  }

  protected async execute([session, call]: string[], options: ParsedOptions): Promise<ExitCode> {
    const [{ checked }, { DecisionInput }, { decideHere }] = await Promise.all([
      import('../input/validate.js'),
      import('../input/approval.input.js'),
      import('../approval/decision.js'),
    ]);
    return await decideHere(this.cli, checked(DecisionInput, { ...options, session, call }), 'allow');
  }
}
