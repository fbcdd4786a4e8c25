import { setTimeout as sleep } from 'node:timers/promises';
import type { EmbeddedRuntime } from '#libs/local';
import { HarnessCommand, type ParsedOptions } from '../cli/command.js';
import { Command, Help, Option } from '../cli/decorators.js';
import { EXIT, type ExitCode } from '../cli/exit.js';
import { jsonLine } from '../render/sanitize.js';
import { statusLine, statusLines } from '../render/status.js';
import { Interrupts } from '../turn/interrupts.js';
import { isOver, readSession, type SessionState } from '../turn/session.js';

/** How often a watched session is looked at, in ms. */
const LOOK_MS = 500;

/** `status`: how a session's latest turn goes, and who runs it. */
@Command({
  name: 'status',
  arguments: '<session>',
  description: 'Show how the latest turn of a session goes',
  argsDescription: { session: 'the session id' },
})
export class StatusCommand extends HarnessCommand {
  @Option({ flags: '-w, --watch', description: 'show each change until the turn ends; the exit code says how it ended' })
  watch(): boolean {
    return true;
  }
  @Option({ flags: '--json', description: 'print JSON, with --watch one line for each change' })
  json(): boolean {
    return true;
  }
  @Help('after')
  examples(): string {
    return '\nExamples:\n  harness-cli status s_review\n  harness-cli status s_review --watch && echo done\n  harness-cli status s_review --json | jq .turn.status';
  }

  protected async execute([session]: string[], options: ParsedOptions): Promise<ExitCode> {
    const [{ checked }, { StatusInput }] = await Promise.all([import('../input/validate.js'), import('../input/session.input.js')]);
    const input = checked(StatusInput, { ...options, session });
    return await this.cli.withRuntime('reader', async (runtime) => {
      if (input.watch) return await this.watchTurn(runtime, input.session, input.json);
      this.show(await readSession(runtime, input.session), input.json);
      return EXIT.ok;
    });
  }

  private show(state: SessionState, asJson: boolean): void {
    if (asJson) this.cli.print(asJsonLine(state));
    else this.cli.print(...statusLines(state, this.cli.out, this.cli.io.now(), this.cli.name, this.cli.columns));
  }

  private async watchTurn(runtime: EmbeddedRuntime, session: string, asJson: boolean): Promise<ExitCode> {
    const stop = new AbortController();
    const interrupts = new Interrupts(this.cli.io.signals, () => stop.abort());
    let before = '';
    try {
      for (;;) {
        const state = await readSession(runtime, session);
        const line = asJson ? asJsonLine(state) : statusLine(state, this.cli.out);
        if (line !== before) {
          this.cli.screen.waiting(null);
          this.cli.print(line);
        }
        before = line;
        if (isOver(state.turn)) return ended(state);
        if (stop.signal.aborted || this.cli.stdout.closed) return EXIT.cancelled;
        if (!asJson) this.cli.screen.waiting('watching');
        await sleep(LOOK_MS, undefined, { signal: stop.signal }).catch(() => undefined);
        if (stop.signal.aborted) return EXIT.cancelled;
      }
    } finally {
      interrupts.close();
    }
  }
}

const asJsonLine = ({ meta, turn, owner }: SessionState): string => jsonLine({ session: meta, turn, owner });

function ended({ turn }: SessionState): ExitCode {
  if (turn?.status === 'failed') return EXIT.failed;
  return turn?.status === 'cancelled' ? EXIT.cancelled : EXIT.ok;
}
