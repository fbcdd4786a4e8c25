import { HarnessCommand, type ParsedOptions } from '../cli/command.js';
import { Command, Help, Option } from '../cli/decorators.js';
import { BY_SIGNAL, EXIT, type ExitCode } from '../cli/exit.js';
import { jsonLine } from '../render/sanitize.js';
import { Interrupts } from '../turn/interrupts.js';
import { readSession } from '../turn/session.js';

/** `watch`: follows a session, whichever process runs it. */
@Command({
  name: 'watch',
  arguments: '<session>',
  description: 'Follow a session as it goes on, over turns',
  argsDescription: { session: 'the session id' },
})
export class WatchCommand extends HarnessCommand {
  @Option({ flags: '--from <entry>', description: 'the entry to begin with, or start (default: the latest message of the user)' })
  from(entry: string): string {
    return entry;
  }
  @Option({ flags: '--json', description: 'print one JSON line for each entry that is complete, and each change of the turn' })
  json(): boolean {
    return true;
  }
  @Help('after')
  examples(): string {
    return '\nShows each entry once, also of turns to come, until Ctrl-C. `status --watch` ends with the turn instead.\n\nExamples:\n  harness-cli watch s_review\n  harness-cli watch s_review --from start --json | jq -c \'select(.type == "entry")\'';
  }

  protected async execute([session]: string[], options: ParsedOptions): Promise<ExitCode> {
    const [{ checked }, { WatchInput }] = await Promise.all([import('../input/validate.js'), import('../input/session.input.js')]);
    const input = checked(WatchInput, { ...options, session });
    const [{ followSession }, { WatchText }] = await Promise.all([import('../watch/session-follow.js'), import('../watch/watch-text.js')]);
    const { cli } = this;
    return await cli.withRuntime('reader', async (runtime) => {
      await readSession(runtime, input.session);
      const stop = new AbortController();
      let code: ExitCode = EXIT.cancelled;
      const interrupts = new Interrupts(cli.io.signals, (signal) => {
        code = BY_SIGNAL[signal];
        stop.abort();
      });
      try {
        const text = new WatchText(cli);
        const from = input.from === undefined ? {} : { from: input.from };
        for await (const change of followSession(runtime.bus, input.session, { ...from, images: input.json, signal: stop.signal })) {
          if (!input.json) text.show(change);
          else if (change.kind === 'entry') cli.print(jsonLine({ type: 'entry', ...change.item }));
          else if (change.kind === 'turn') cli.print(jsonLine({ type: 'turn', ...change.turn }));
          if (cli.stdout.closed) return EXIT.ok;
          if (cli.stdout.isBehind) await cli.stdout.flushed();
        }
        return code;
      } finally {
        interrupts.close();
      }
    });
  }
}
