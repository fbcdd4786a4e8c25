import type { PendingCall } from '../approval/pending.js';
import { HarnessCommand, type ParsedOptions } from '../cli/command.js';
import { Command, Help, Option } from '../cli/decorators.js';
import { CliError, EXIT, type ExitCode } from '../cli/exit.js';
import { shortArguments } from '../render/call-text.js';
import { ago } from '../render/format.js';
import { jsonLine, sanitizeLine } from '../render/sanitize.js';
import { type Column, table } from '../render/table.js';

/** `approvals`: the calls that wait for a person. */
@Command({ name: 'approvals', description: 'List the calls that wait for an approval' })
export class ApprovalsCommand extends HarnessCommand {
  @Option({ flags: '-s, --session <id>', description: 'only those of this session' })
  session(id: string): string {
    return id;
  }
  @Option({ flags: '--json', description: 'print one JSON call per line' })
  json(): boolean {
    return true;
  }
  @Help('after')
  examples(): string {
    return '\nExamples:\n  harness-cli approvals\n  harness-cli approve s_review fc_1\n  harness-cli deny s_review fc_1 --reason "not that file"';
  }

  protected async execute(_args: string[], options: ParsedOptions): Promise<ExitCode> {
    const [{ checked }, { ApprovalsInput }] = await Promise.all([import('../input/validate.js'), import('../input/approval.input.js')]);
    const input = checked(ApprovalsInput, options);
    const { cli } = this;
    const { listPending } = await import('../approval/pending.js');
    return await cli.withRuntime('reader', async (runtime) => {
      const pending = await listPending(runtime.bus, input.session);
      if (pending === null)
        throw new CliError(EXIT.unreachable, 'cli/no_approval', 'there is no approval worker: no call waits for anybody');
      if (input.json) cli.print(...pending.map(jsonLine));
      else if (pending.length > 0) cli.print(...table(pending, this.columns(), cli.columns, cli.out));
      else cli.screen.note(cli.err.dim('no call waits for an approval'));
      return EXIT.ok;
    });
  }

  private columns(): Column<PendingCall>[] {
    const { out, io } = this.cli;
    const now = io.now();
    return [
      { title: 'SESSION', text: (call) => sanitizeLine(call.session_id), paint: (text) => out.bold(text) },
      { title: 'CALL', text: (call) => sanitizeLine(call.function_call_id), paint: (text) => out.bold(text) },
      { title: 'FUNCTION', text: (call) => sanitizeLine(call.function_id) },
      { title: 'SINCE', text: (call) => ago(call.pending_at, now), dropOrder: 2 },
      { title: 'ARGUMENTS', text: (call) => shortArguments(call.arguments_excerpt ?? null), flexible: true, dropOrder: 1 },
    ];
  }
}
