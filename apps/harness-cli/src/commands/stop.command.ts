import { setTimeout as sleep } from 'node:timers/promises';
import type { StopResponse } from '#libs/contracts';
import { HarnessCommand, type ParsedOptions } from '../cli/command.js';
import { Command, Help, Option } from '../cli/decorators.js';
import { CliError, EXIT, type ExitCode } from '../cli/exit.js';
import { plural } from '../render/format.js';
import { jsonLine, sanitizeLine } from '../render/sanitize.js';
import { paintStatus } from '../render/status.js';
import { isOver, readSession } from '../turn/session.js';

/** How long the process that runs the turn has to end it, and how often that is looked at, in ms. */
const PATIENCE_MS = 10_000;
const LOOK_MS = 100;

/** `stop`: ends the running turn of a session, wherever it runs. */
@Command({
  name: 'stop',
  arguments: '<session>',
  description: 'Stop the running turn of a session',
  argsDescription: { session: 'the session id' },
})
export class StopCommand extends HarnessCommand {
  @Option({ flags: '--json', description: 'print JSON' })
  json(): boolean {
    return true;
  }
  @Help('after')
  examples(): string {
    return '\nWaits until the turn has ended; a turn whose process is gone is ended here. A session whose turn has ended already is left as it is.\n\nExample:\n  harness-cli stop s_review';
  }

  protected async execute([session]: string[], options: ParsedOptions): Promise<ExitCode> {
    const [{ checked }, { SessionInput }] = await Promise.all([import('../input/validate.js'), import('../input/session.input.js')]);
    const input = checked(SessionInput, { ...options, session });
    return await this.cli.withRuntime('client', async (runtime) => {
      let state = await readSession(runtime, input.session);
      const wasOver = isOver(state.turn);
      if (!wasOver) {
        await runtime.bus.trigger<StopResponse>({ function_id: 'harness::stop', payload: { session_id: input.session } });
        if (!input.json) this.cli.screen.waiting('waiting for the turn to end');
        const until = this.cli.io.now() + PATIENCE_MS;
        for (
          state = await readSession(runtime, input.session);
          !isOver(state.turn) && this.cli.io.now() < until;
          state = await readSession(runtime, input.session)
        ) {
          if (state.owner === 'gone' || state.owner === 'none') await runtime.adopt(input.session);
          await sleep(LOOK_MS);
        }
        this.cli.screen.waiting(null);
      }
      const { turn } = state;
      if (!isOver(turn))
        throw new CliError(
          EXIT.unreachable,
          'cli/still_running',
          `the turn of ${input.session} is asked to stop, but has not ended in ${PATIENCE_MS / 1000} s`,
          `Look again with \`${this.cli.name} status ${input.session}\`.`,
        );
      if (input.json)
        this.cli.print(
          jsonLine({ session_id: input.session, turn_id: turn?.turn_id ?? null, status: turn?.status ?? null, stopped: !wasOver }),
        );
      else if (turn === null) this.cli.print(`session ${sanitizeLine(input.session)} has no turn`);
      else
        this.cli.print(
          `${paintStatus(turn.status, this.cli.out)} · ${wasOver ? 'the turn had ended before' : `after ${plural(turn.turn_count, 'model call')}`} · session ${sanitizeLine(input.session)}`,
        );
      return EXIT.ok;
    });
  }
}
