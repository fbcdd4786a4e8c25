import { HarnessCommand, type ParsedOptions } from '../cli/command.js';
import { Command, Help, Option } from '../cli/decorators.js';
import type { ExitCode } from '../cli/exit.js';

/** `deny`: answers a call that waits with a refusal. */
@Command({
  name: 'deny',
  arguments: '<session> <call>',
  description: 'Refuse a call that waits for an approval',
  argsDescription: { session: 'the session id', call: 'the id of the call' },
})
export class DenyCommand extends HarnessCommand {
  @Option({ flags: '--reason <text>', description: 'why; the model is told' })
  reason(text: string): string {
    return text;
  }
  @Option({ flags: '--json', description: 'print JSON' })
  json(): boolean {
    return true;
  }
  @Help('after')
  examples(): string {
    return '\nThe turn goes on, and the model is told that a person denied the call.\n\nExample:\n  harness-cli deny s_review fc_1 --reason "not that file"';
  }

  protected async execute([session, call]: string[], options: ParsedOptions): Promise<ExitCode> {
    const [{ checked }, { DecisionInput }, { decideHere }] = await Promise.all([
      import('../input/validate.js'),
      import('../input/approval.input.js'),
      import('../approval/decision.js'),
    ]);
    return await decideHere(this.cli, checked(DecisionInput, { ...options, session, call }), 'deny');
  }
}
