import type { Model, ProviderInfo } from '#libs/contracts';
import { HarnessCommand, type ParsedOptions } from '../cli/command.js';
import { Command, Help, Option } from '../cli/decorators.js';
import { EXIT, type ExitCode, usageError } from '../cli/exit.js';
import { closeTo, either } from '../input/close.js';
import { count } from '../render/format.js';
import { jsonLine, sanitizeLine } from '../render/sanitize.js';
import type { Style } from '../render/style.js';
import { table } from '../render/table.js';
import { wrap } from '../render/wrap.js';
import { chooseModel, readCatalog } from '../turn/choose-model.js';

/** `models`: the providers with what they need, and their models. */
@Command({ name: 'models', description: 'List the providers and their models' })
export class ModelsCommand extends HarnessCommand {
  @Option({ flags: '-p, --provider <id>', description: 'only those of this provider' })
  provider(id: string): string {
    return id;
  }
  @Option({ flags: '--json', description: 'print JSON: providers, models and the default' })
  json(): boolean {
    return true;
  }
  @Help('after')
  examples(): string {
    return '\nExamples:\n  harness-cli models\n  harness-cli models --provider anthropic --json | jq -r .models[].id';
  }

  protected async execute(_args: string[], options: ParsedOptions): Promise<ExitCode> {
    const [{ checked }, { ModelsInput }] = await Promise.all([import('../input/validate.js'), import('../input/catalog.input.js')]);
    const { provider, json } = checked(ModelsInput, options);
    const { cli } = this;
    return await cli.withRuntime('reader', async (runtime) => {
      const catalog = await readCatalog(runtime);
      const ids = catalog.providers.map(({ id }) => id);
      if (provider !== undefined && !ids.includes(provider)) {
        const close = closeTo(provider, ids);
        throw usageError(
          `there is no provider ${provider}${close.length > 0 ? `; did you mean ${either(close)}?` : ''}`,
          `There is ${ids.join(', ')}.`,
          'cli/unknown_provider',
        );
      }
      const { default_model, default_provider } = runtime.settings.current();
      const taken = chosen(() => chooseModel(catalog, {}, { model: default_model, provider: default_provider }));
      const providers = catalog.providers.filter(({ id }) => provider === undefined || id === provider);
      const models = catalog.models.filter((model) => provider === undefined || model.provider === provider);
      if (json) {
        cli.print(jsonLine({ providers, models, default: taken }));
        return EXIT.ok;
      }
      const columns = cli.columns;
      cli.print(
        ...table(
          providers,
          [
            { title: 'PROVIDER', text: ({ id }) => sanitizeLine(id), paint: (text) => cli.out.bold(text) },
            {
              title: 'STATE',
              text: providerState,
              paint: (text, info) => (info.configured && info.available ? cli.out.green(text) : cli.out.yellow(text)),
              flexible: true,
            },
          ],
          columns,
          cli.out,
        ),
      );
      if (models.length > 0) cli.print('', ...modelTable(models, columns, cli.out));
      if (taken !== null) {
        const why = taken.why === null ? '' : ` (${taken.why})`;
        cli.print(
          '',
          ...wrap(
            cli.out.dim(`Without --model and --provider: ${sanitizeLine(taken.model)} from ${sanitizeLine(taken.provider)}${why}`),
            columns,
          ),
        );
      }
      return EXIT.ok;
    });
  }
}

/** What would be taken; null when the configured default cannot be. */
function chosen<T>(choose: () => T): T | null {
  try {
    return choose();
  } catch {
    return null;
  }
}

function providerState({ configured, available, credential_env_var }: ProviderInfo): string {
  if (!configured) return credential_env_var == null ? 'not set up' : `no key: set ${credential_env_var}`;
  return available ? 'ready' : 'not available now';
}

const price = (usd: number): string => (Number.isInteger(usd) ? String(usd) : usd.toFixed(2));
const modelTable = (models: readonly Model[], columns: number, style: Style): string[] =>
  table(
    models,
    [
      { title: 'MODEL', text: (model) => sanitizeLine(model.id), paint: (text) => style.bold(text) },
      { title: 'PROVIDER', text: (model) => sanitizeLine(model.provider), dropOrder: 1 },
      { title: 'CONTEXT', text: (model) => count(model.context_window), right: true, dropOrder: 2 },
      { title: 'OUTPUT', text: (model) => count(model.max_output_tokens), right: true, dropOrder: 3 },
      {
        title: '$/M TOK',
        text: ({ pricing }) => (pricing === undefined ? '' : `${price(pricing.input)}/${price(pricing.output)}`),
        right: true,
        dropOrder: 4,
      },
      { title: 'CAN', text: abilities, dropOrder: 5 },
    ],
    columns,
    style,
  );

const abilities = (model: Model): string =>
  (['tools', 'vision', 'thinking', 'cache'] as const)
    .filter((what) => model[`supports_${what}`] === true)
    .map((what) => (what === 'thinking' ? 'think' : what))
    .join(' ');
