import type { JsonValue } from '#libs/contracts';
import type { EmbeddedRuntime } from '#libs/local';
import { HarnessCommand, type ParsedOptions } from '../cli/command.js';
import { Command, Help, Option } from '../cli/decorators.js';
import { EXIT, type ExitCode, usageError } from '../cli/exit.js';
import { closeTo, either } from '../input/close.js';
import { jsonBlock, jsonLine, sanitize, sanitizeLine } from '../render/sanitize.js';
import { table } from '../render/table.js';

interface FunctionRow {
  function_id: string;
  worker_name: string;
  description?: string;
}
interface FunctionInfo extends FunctionRow {
  request_schema?: JsonValue;
  response_schema?: JsonValue;
  error?: string;
}

/** `functions`: what can be called, or one function in full. */
@Command({
  name: 'functions',
  arguments: '[id]',
  description: 'List the functions, or show one with its schemas',
  argsDescription: { id: 'a function id, such as coder::read-file' },
})
export class FunctionsCommand extends HarnessCommand {
  @Option({ flags: '--search <words>', description: 'only those with these words in id or description' })
  search(words: string): string {
    return words;
  }
  @Option({ flags: '-a, --all', description: 'internal functions too' })
  all(): boolean {
    return true;
  }
  @Option({ flags: '--json', description: 'print JSON, in a list one function per line' })
  json(): boolean {
    return true;
  }
  @Help('after')
  examples(): string {
    return '\nExamples:\n  harness-cli functions --search file\n  harness-cli functions coder::read-file';
  }

  protected async execute([id]: string[], options: ParsedOptions): Promise<ExitCode> {
    const [{ checked }, { FunctionsInput }] = await Promise.all([import('../input/validate.js'), import('../input/catalog.input.js')]);
    const input = checked(FunctionsInput, { ...options, id });
    return await this.cli.withRuntime('reader', async (runtime) => {
      if (input.id !== undefined) await this.one(runtime, input.id, input.json);
      else await this.list(runtime, input);
      return EXIT.ok;
    });
  }

  private async list({ bus }: EmbeddedRuntime, { search, all, json }: { search?: string; all: boolean; json: boolean }): Promise<void> {
    const { cli } = this;
    const payload = { ...(search === undefined ? {} : { search }), include_internal: all };
    const { functions } = await bus.trigger<{ functions: FunctionRow[] }>({ function_id: 'engine::functions::list', payload });
    if (json) {
      cli.print(...functions.map(jsonLine));
      return;
    }
    if (functions.length === 0) cli.screen.note(cli.err.dim('no function meets this'));
    const columns = cli.columns;
    if (functions.length > 0) {
      cli.print(
        ...table(
          functions,
          [
            { title: 'FUNCTION', text: (row) => sanitizeLine(row.function_id), paint: (text) => cli.out.bold(text) },
            { title: 'WHAT IT DOES', text: (row) => sanitizeLine(row.description ?? ''), flexible: true, dropOrder: 1 },
          ],
          columns,
          cli.out,
        ),
      );
    }
  }

  private async one({ bus }: EmbeddedRuntime, id: string, asJson: boolean): Promise<void> {
    const { cli } = this;
    const { functions } = await bus.trigger<{ functions: FunctionInfo[] }>({
      function_id: 'engine::functions::info',
      payload: { function_ids: [id] },
    });
    const info = functions[0];
    if (info === undefined || info.error !== undefined) {
      const { functions: known } = await bus.trigger<{ functions: FunctionRow[] }>({
        function_id: 'engine::functions::list',
        payload: { include_internal: true },
      });
      const close = closeTo(
        id,
        known.map((row) => row.function_id),
      );
      throw usageError(
        `there is no function ${id}${close.length > 0 ? `; did you mean ${either(close)}?` : ''}`,
        id.includes('*')
          ? `Globs are for --allow. Search with \`${cli.name} functions --search '${sanitizeLine(id.replaceAll('*', ''))}'\`.`
          : `See \`${cli.name} functions\`, or search with --search.`,
        'cli/unknown_function',
      );
    }
    if (asJson) {
      cli.print(jsonLine(info));
      return;
    }
    cli.print(`${cli.out.bold(sanitizeLine(info.function_id))}  ${cli.out.dim(`by ${sanitizeLine(info.worker_name)}`)}`);
    if (info.description !== undefined) cli.print(sanitize(info.description));
    for (const [title, schema] of [
      ['request', info.request_schema],
      ['response', info.response_schema],
    ] as const) {
      if (schema !== undefined && schema !== null) cli.print('', cli.out.dim(title), jsonBlock(schema));
    }
  }
}
