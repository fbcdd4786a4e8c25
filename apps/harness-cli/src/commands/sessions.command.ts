import type { SessionMeta } from '#libs/contracts';
import { HarnessCommand, type ParsedOptions } from '../cli/command.js';
import { Command, Help, Option } from '../cli/decorators.js';
import { EXIT, type ExitCode } from '../cli/exit.js';
import { SESSION_STATUS } from '../input/choices.js';
import { wholeNumber } from '../input/values.js';
import { ago } from '../render/format.js';
import { jsonLine, sanitizeLine } from '../render/sanitize.js';
import { paintStatus } from '../render/status.js';
import { type Column, table } from '../render/table.js';
import { listSessions } from '../turn/session.js';

/** `sessions`: what is stored, the newest first. */
@Command({ name: 'sessions', description: 'List the sessions, the last changed first' })
export class SessionsCommand extends HarnessCommand {
  @Option({ flags: '--status <status>', description: 'only those with this status', choices: SESSION_STATUS })
  status(status: string): string {
    return status;
  }
  @Option({ flags: '--search <words>', description: 'only those with these words in id, title or description' })
  search(words: string): string {
    return words;
  }
  @Option({ flags: '-n, --limit <n>', description: 'how many (default: 20)' })
  limit(n: string): number | string {
    return wholeNumber(n);
  }
  @Option({ flags: '--json', description: 'print one JSON session per line' })
  json(): boolean {
    return true;
  }
  @Help('after')
  examples(): string {
    return '\nExamples:\n  harness-cli sessions --status working\n  harness-cli sessions --search review --json | jq -r .session_id';
  }

  protected async execute(_args: string[], options: ParsedOptions): Promise<ExitCode> {
    const [{ checked }, { SessionsInput }] = await Promise.all([import('../input/validate.js'), import('../input/session.input.js')]);
    const input = checked(SessionsInput, options);
    const { cli } = this;
    return await cli.withRuntime('reader', async (runtime) => {
      const sessions = await listSessions(runtime, input, input.limit);
      if (input.json) cli.print(...sessions.map(jsonLine));
      else if (sessions.length > 0) cli.print(...table(sessions, this.columns(), cli.columns, cli.out));
      else
        cli.screen.note(
          cli.err.dim(
            input.status !== undefined || input.search !== undefined
              ? 'no session meets this'
              : `no sessions yet in ${sanitizeLine(runtime.dataDir)}; begin one with \`${cli.name} send "hello"\``,
          ),
        );
      return EXIT.ok;
    });
  }

  private columns(): Column<SessionMeta>[] {
    const { out, io } = this.cli;
    const now = io.now();
    return [
      { title: 'SESSION', text: (meta) => sanitizeLine(meta.session_id), paint: (text) => out.bold(text) },
      { title: 'STATUS', text: (meta) => meta.status, paint: (text, meta) => paintStatus(meta.status, out, text) },
      { title: 'MESSAGES', text: (meta) => String(meta.message_count), right: true, dropOrder: 3 },
      { title: 'CHANGED', text: (meta) => ago(meta.updated_at, now), dropOrder: 2 },
      { title: 'TITLE', text: (meta) => sanitizeLine(meta.title), flexible: true, dropOrder: 1 },
    ];
  }
}
