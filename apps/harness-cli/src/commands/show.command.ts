import type { MessageItem } from '#libs/contracts';
import { HarnessCommand, type ParsedOptions } from '../cli/command.js';
import { Command, Help, Option } from '../cli/decorators.js';
import { EXIT, type ExitCode } from '../cli/exit.js';
import { wholeNumber } from '../input/values.js';
import { jsonLine, sanitizeLine } from '../render/sanitize.js';
import { paintStatus } from '../render/status.js';
import { TranscriptText } from '../render/transcript.js';
import { readSession, transcript } from '../turn/session.js';

/** `show`: the transcript of a session. */
@Command({
  name: 'show',
  arguments: '<session>',
  description: 'Show the transcript of a session',
  argsDescription: { session: 'the session id' },
})
export class ShowCommand extends HarnessCommand {
  @Option({ flags: '-n, --limit <n>', description: 'only the last n entries' })
  limit(n: string): number | string {
    return wholeNumber(n);
  }
  @Option({ flags: '--tree', description: 'show the session with its sub-agents instead: state, turns, calls and cost of each' })
  tree(): boolean {
    return true;
  }
  @Option({ flags: '--json', description: 'print one JSON entry per line, complete; with --tree one JSON tree' })
  json(): boolean {
    return true;
  }
  @Help('after')
  examples(): string {
    return '\nExamples:\n  harness-cli show s_review | less -R\n  harness-cli show s_review --limit 5\n  harness-cli show s_review --tree\n  harness-cli show s_review --json | jq -r \'select(.message.role == "user")\'';
  }

  protected async execute([session]: string[], options: ParsedOptions): Promise<ExitCode> {
    const [{ checked }, { ShowInput }] = await Promise.all([import('../input/validate.js'), import('../input/session.input.js')]);
    const input = checked(ShowInput, { ...options, session });
    const { cli } = this;
    return await cli.withRuntime('reader', async (runtime) => {
      const { meta, turn } = await readSession(runtime, input.session);
      if (input.tree) {
        const [{ readTree }, { treeLines }] = await Promise.all([import('../turn/tree.js'), import('../render/tree.js')]);
        const tree = await readTree(runtime.bus, meta);
        cli.print(...(input.json ? [jsonLine(tree)] : treeLines(tree, cli.out, cli.columns)));
        return EXIT.ok;
      }
      const text = new TranscriptText(cli.out, cli.columns);
      if (!input.json) {
        const status = turn?.status ?? meta.status;
        cli.print(
          `${cli.out.bold(meta.title === '' ? sanitizeLine(meta.session_id) : sanitizeLine(meta.title))}  ${cli.out.dim(`${sanitizeLine(meta.session_id)} ·`)} ${paintStatus(status, cli.out)}`,
        );
      }
      const print = (item: MessageItem): void => cli.print(...(input.json ? [jsonLine(item)] : text.entry(item)));
      let last: MessageItem[] = [];
      for await (const page of transcript(runtime, input.session, input.json)) {
        if (input.limit === undefined) {
          for (const item of page) print(item);
          if (cli.stdout.closed) break;
          await cli.stdout.flushed();
        } else {
          last = [...last, ...page].slice(-input.limit);
        }
      }
      for (const item of last) print(item);
      return EXIT.ok;
    });
  }
}
