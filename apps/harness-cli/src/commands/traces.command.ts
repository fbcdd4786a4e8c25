import { BUS_CODES, errorCode } from '#libs/contracts';
import type { EmbeddedRuntime, TurnSpans } from '#libs/local';
import { HarnessCommand, type ParsedOptions } from '../cli/command.js';
import { Command, Help, Option } from '../cli/decorators.js';
import { CliError, EXIT, type ExitCode, usageError } from '../cli/exit.js';
import { jsonLine } from '../render/sanitize.js';
import { readSession } from '../turn/session.js';

/** `traces`: where the time of a turn went. */
@Command({
  name: 'traces',
  arguments: '<session>',
  description: 'Show where the time, tokens and cost of a turn went, sub-agents included',
  argsDescription: { session: 'the session id' },
})
export class TracesCommand extends HarnessCommand {
  @Option({ flags: '-t, --turn <id>', description: 'a turn other than the latest' })
  turn(id: string): string {
    return id;
  }
  @Option({ flags: '--json', description: 'print the spans as JSON' })
  json(): boolean {
    return true;
  }
  @Help('after')
  examples(): string {
    return "\nNeeds no collector, and not the process that ran the turn; also shows a turn that is under way. What has failed is marked.\n\nExamples:\n  harness-cli traces s_review\n  harness-cli traces s_review --json | jq '.spans[] | select(.error)'";
  }

  protected async execute([session]: string[], options: ParsedOptions): Promise<ExitCode> {
    const [{ checked }, { TracesInput }] = await Promise.all([import('../input/validate.js'), import('../input/session.input.js')]);
    const input = checked(TracesInput, { ...options, session });
    const { cli } = this;
    return await cli.withRuntime('reader', async (runtime) => {
      await readSession(runtime, input.session);
      const trace = await readTrace(runtime, input.session, input.turn);
      if (input.json) cli.print(jsonLine(trace));
      else {
        const { waterfall } = await import('../render/waterfall.js');
        cli.print(...waterfall(trace, cli.out, cli.columns));
      }
      return EXIT.ok;
    });
  }
}

async function readTrace({ bus }: EmbeddedRuntime, session_id: string, turn_id: string | undefined): Promise<TurnSpans> {
  const payload = { session_id, ...(turn_id === undefined ? {} : { turn_id }) };
  const trace = await bus.trigger<TurnSpans | null>({ function_id: 'harness-traces::get', payload }).catch((error: unknown) => {
    if (errorCode(error) !== BUS_CODES.functionNotFound) throw error;
    throw new CliError(EXIT.unreachable, 'cli/no_traces', 'the harness there does not serve traces', 'Update it.');
  });
  if (trace !== null) return trace;
  throw turn_id === undefined
    ? usageError(`session ${session_id} has no turn`, undefined, 'cli/no_trace')
    : usageError(
        `there is no trace of a turn ${turn_id} in session ${session_id}`,
        'Only the traces of the latest turns are kept; `trace_turns` in the configuration says how many.',
        'cli/no_trace',
      );
}
