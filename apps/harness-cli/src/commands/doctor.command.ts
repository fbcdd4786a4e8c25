import type { Check, CheckStatus } from '../checks/check.js';
import { HarnessCommand, type ParsedOptions } from '../cli/command.js';
import { Command, Help, Option } from '../cli/decorators.js';
import { EXIT, type ExitCode } from '../cli/exit.js';
import { pad } from '../render/format.js';
import { jsonLine, sanitizeLine } from '../render/sanitize.js';
import { wrap } from '../render/wrap.js';

const MARK: { readonly [status in CheckStatus]: string } = { ok: '✓', warn: '!', fail: '✗' };

/** Columns before what is said of a check. */
const INDENT = 15;

/** `doctor`: what works here, and what to do about what doesn't. */
@Command({ name: 'doctor', description: 'Check what works here, and say what to do about what does not' })
export class DoctorCommand extends HarnessCommand {
  @Option({ flags: '--json', description: 'print one JSON check per line' })
  json(): boolean {
    return true;
  }
  @Help('after')
  examples(): string {
    return '\nChecks Node, the data folder, the disk, SQLite, the configuration, what is stored, keys (never their values), Redis and the engine.\nExits with 1 when something fails.';
  }

  protected async execute(_args: string[], options: ParsedOptions): Promise<ExitCode> {
    const { cli } = this;
    const [{ checkNode, checkDataDir, checkDisk, checkSqlite }, { checkConfig, checkStore }, { checkKeys, checkReach }] = await Promise.all(
      [import('../checks/machine.js'), import('../checks/store.js'), import('../checks/reach.js')],
    );
    const { path, source } = cli.dataDir();
    const { env } = cli.io;
    const steps: (() => Check | Promise<Check>)[] = [
      () => checkNode(),
      () => checkDataDir(path, source),
      () => checkDisk(path),
      () => checkSqlite(path),
      () => checkConfig(path, env),
      () => checkStore(cli, path),
      () => checkKeys(env),
      () => checkReach('redis', 'REDIS_URL', env, 'Start it (redis-server), or unset REDIS_URL: the embedded queue needs no server.'),
      () =>
        checkReach(
          'engine',
          'III_URL',
          { III_URL: cli.url('worker') },
          'Start the engine, or leave its address out: the embedded one needs no server.',
        ),
    ];
    const found: Check[] = [];
    for (const step of steps) {
      if (options['json'] !== true) cli.screen.waiting('checking');
      const check = await step();
      found.push(check);
      cli.screen.waiting(null);
      cli.print(...(options['json'] === true ? [jsonLine(check)] : this.lines(check)));
    }
    const failed = found.filter((check) => check.status === 'fail').length;
    const warned = found.filter((check) => check.status === 'warn').length;
    if (options['json'] !== true)
      cli.print(
        '',
        failed > 0 ? cli.out.red(`${failed} failed`) : warned > 0 ? cli.out.yellow('works, with warnings') : cli.out.green('all works'),
      );
    return failed > 0 ? EXIT.failed : EXIT.ok;
  }

  private lines({ name, status, detail, advice }: Check): string[] {
    const { out } = this.cli;
    const paint = status === 'ok' ? out.green : status === 'warn' ? out.yellow : out.red;
    const lines = [`${paint(MARK[status])} ${out.bold(pad(name, 11))}  ${wrap(sanitizeLine(detail), this.cli.columns, INDENT).join('\n')}`];
    if (advice !== undefined)
      lines.push(`${' '.repeat(INDENT)}${wrap(out.dim(`→ ${sanitizeLine(advice)}`), this.cli.columns, INDENT).join('\n')}`);
    return lines;
  }
}
