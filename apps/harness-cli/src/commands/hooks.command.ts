import { HarnessCommand, type ParsedOptions } from '../cli/command.js';
import { Command, Help, Option } from '../cli/decorators.js';
import { CliError, EXIT, type ExitCode, usageError } from '../cli/exit.js';
import { ago } from '../render/format.js';
import { jsonLine, sanitizeLine } from '../render/sanitize.js';
import { type Column, table } from '../render/table.js';

/** Prefix of the trigger types that are hook points. */
const POINTS = 'harness::hook::';

interface HookRow {
  id: string;
  trigger_type: string;
  function_id: string;
  worker_name: string | null;
  /** Since when the worker of a guard is away, in ms; it denies meanwhile. */
  away_since?: number;
}

/** `hooks`: what is asked before and after calls, also guards whose worker is away; `hooks remove` takes one back. */
@Command({
  name: 'hooks',
  arguments: '[action] [id]',
  description: 'List the hooks in force, or remove one',
  argsDescription: { action: 'remove', id: 'the id of the hook to remove' },
})
export class HooksCommand extends HarnessCommand {
  @Option({ flags: '--json', description: 'print one JSON hook per line' })
  json(): boolean {
    return true;
  }
  @Help('after')
  examples(): string {
    return `
A hook of another program that denies when it fails goes on denying while that program is away. It ends when the program is back,
when it has shut down by itself, or when the hook is removed here.

Examples:
  harness-cli hooks
  harness-cli hooks remove 4b0e61d2-5f0f-4c63-9a8a-3a52a27c3d0c`;
  }

  protected async execute([action, id]: string[], { json }: ParsedOptions): Promise<ExitCode> {
    if (action !== undefined && action !== 'remove') throw usageError(`hooks knows remove, not '${sanitizeLine(action)}'`);
    if (action === 'remove' && id === undefined) throw usageError('hooks remove needs the id of a hook, as `hooks` lists it');
    const { cli } = this;
    return await cli.withRuntime('reader', async ({ bus }) => {
      const { registered_triggers } = await bus.trigger<{ registered_triggers: HookRow[] }>({
        function_id: 'engine::registered-triggers::list',
        payload: {},
      });
      const hooks = registered_triggers.filter(({ trigger_type }) => trigger_type.startsWith(POINTS));
      if (id !== undefined) {
        if (!hooks.some((hook) => hook.id === id)) {
          throw new CliError(EXIT.usage, 'cli/unknown_hook', `there is no hook ${sanitizeLine(id)}`, 'List them with `harness-cli hooks`.');
        }
        await bus.trigger({ function_id: 'engine::unregister_trigger', payload: { id } });
        cli.print(`removed ${id}`);
      } else if (json === true) cli.print(...hooks.map(jsonLine));
      else if (hooks.length > 0) cli.print(...table(hooks, this.columns(), cli.columns, cli.out));
      else cli.screen.note(cli.err.dim('no hooks'));
      return EXIT.ok;
    });
  }

  private columns(): Column<HookRow>[] {
    const now = this.cli.io.now();
    return [
      { title: 'HOOK', text: ({ id }) => sanitizeLine(id) },
      { title: 'POINT', text: ({ trigger_type }) => sanitizeLine(trigger_type.slice(POINTS.length)) },
      { title: 'FUNCTION', text: ({ function_id }) => sanitizeLine(function_id), flexible: true },
      { title: 'WORKER', text: ({ worker_name }) => sanitizeLine(worker_name ?? ''), dropOrder: 1 },
      { title: 'STATE', text: ({ away_since }) => (away_since === undefined ? 'in force' : `away ${ago(away_since, now)}, denies`) },
    ];
  }
}
