import type { ScenarioResult } from '#libs/conformance';
import { HarnessCommand, type ParsedOptions } from '../cli/command.js';
import { Command, Help, Option } from '../cli/decorators.js';
import { EXIT, type ExitCode, usageError } from '../cli/exit.js';
import { closeTo, either } from '../input/close.js';
import { append } from '../input/values.js';
import { plural } from '../render/format.js';
import { jsonLine, sanitizeLine } from '../render/sanitize.js';
import { type Column, table } from '../render/table.js';
import { Interrupts } from '../turn/interrupts.js';

/** `conformance`: whether a running harness keeps the contract, as seen from outside. */
@Command({ name: 'conformance', description: 'Check from outside whether the harness at --url keeps the contract' })
export class ConformanceCommand extends HarnessCommand {
  @Option({ flags: '--only <id>', description: 'run this scenario only; may be given several times' })
  only(id: string, before: unknown): string[] {
    return append(id, before);
  }
  @Option({ flags: '--json', description: 'print one JSON result per line' })
  json(): boolean {
    return true;
  }
  @Help('after')
  examples(): string {
    return `
Connects as a worker of its own, offers a scripted model, and sends, holds, stops and looks as any program could; needs no key. What it makes
has names of its own and is taken back. Exits with 1 when a scenario fails; one that cannot run there is skipped.

Examples:
  harness-cli conformance --url ws://127.0.0.1:49134
  harness-cli conformance --url ws://127.0.0.1:49134 --only plain-answer --only tool-turn --json`;
  }

  protected async execute(_args: string[], options: ParsedOptions): Promise<ExitCode> {
    const { cli } = this;
    if (cli.url('client') === undefined)
      throw usageError('--url (or III_URL) is missing: the address of the harness to check', 'Try --url ws://127.0.0.1:49134.');
    const { runConformance, scenarios } = await import('#libs/conformance');
    const only = options['only'] as string[] | undefined;
    const ids = scenarios.map(({ id }) => id);
    const unknown = only?.find((id) => !ids.includes(id));
    if (unknown !== undefined) throw unknownScenario(unknown, ids);
    const asJson = options['json'] === true;
    const stop = new AbortController();
    const interrupts = new Interrupts(cli.io.signals, () => stop.abort());
    try {
      return await cli.withRuntime('client', async ({ bus }) => {
        const results = await runConformance(bus, {
          scenarios: scenarios.filter(({ id }) => only?.includes(id) ?? true),
          signal: stop.signal,
          onStart: ({ id }) => cli.screen.waiting(id),
          onResult: (result) => {
            if (asJson) cli.print(jsonLine(result));
          },
        });
        cli.screen.waiting(null);
        if (!asJson) cli.print(...table(results, this.columns(), cli.columns, cli.out), '', this.summary(results));
        if (stop.signal.aborted) return EXIT.cancelled;
        return results.some(({ result }) => result === 'failed') ? EXIT.failed : EXIT.ok;
      });
    } finally {
      interrupts.close();
    }
  }

  private columns(): Column<ScenarioResult>[] {
    const { out } = this.cli;
    const paint = { passed: out.green, failed: out.red, skipped: out.yellow };
    return [
      { title: 'SCENARIO', text: ({ id }) => id, paint: (text) => out.bold(text) },
      { title: 'RESULT', text: ({ result }) => result, paint: (text, { result }) => paint[result](text) },
      { title: 'MS', text: ({ ms }) => String(ms), right: true },
      { title: 'WHAT', text: ({ title, why }) => sanitizeLine(why === undefined ? title : `${title}: ${why}`), flexible: true },
    ];
  }

  private summary(results: readonly ScenarioResult[]): string {
    const { out } = this.cli;
    const count = (wanted: ScenarioResult['result']): number => results.filter(({ result }) => result === wanted).length;
    const [failed, skipped] = [count('failed'), count('skipped')];
    const text = `${plural(results.length, 'scenario')}: ${count('passed')} passed, ${failed} failed, ${skipped} skipped`;
    return failed > 0 ? out.red(text) : out.green(text);
  }
}

function unknownScenario(id: string, ids: readonly string[]): Error {
  const meant = closeTo(id, ids);
  return usageError(`--only: there is no scenario ${JSON.stringify(id)}${meant.length > 0 ? ` (did you mean ${either(meant)}?)` : ''}`);
}
