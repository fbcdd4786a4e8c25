import { errorCode, errorMessage, type JsonValue } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import { type ConfigurationFault, type LiveConfiguration, ownDefinitions, valuesOf } from '../configuration/index.js';
import type { Log } from './reach.js';

const ID = 'harness';
/** Errors of an engine that has no such entry yet. */
const UNKNOWN: ReadonlySet<unknown> = new Set(['NOT_FOUND', 'NOT_REGISTERED']);

/** Keeps the settings of the harness in the configuration of the engine, where they can be changed while it runs. */
export class EngineSettings {
  /** What is wrong with the value on the engine, one line each; the last good one is in force meanwhile. */
  faults: readonly string[] = [];

  constructor(
    private readonly bus: Bus,
    private readonly configuration: LiveConfiguration,
    private readonly log: Log,
  ) {
    configuration.refresh = () => this.refresh();
  }

  /**
   * Hears of changes from now on, registers the entry with its schema, with what the files say where the engine has no value yet, and takes the engine's value.
   * Throws as `Bus.trigger`.
   */
  async begin(): Promise<void> {
    this.bus.registerTrigger({ type: 'configuration', function_id: 'harness::on-config-change', config: { configuration_id: ID } });
    await this.register();
  }

  private async register(): Promise<void> {
    const definition = ownDefinitions.get(ID) as NonNullable<ReturnType<typeof ownDefinitions.get>>;
    const initial = (await this.value()) === undefined ? { initial_value: valuesOf(this.configuration.current).get(ID) } : {};
    await this.bus.trigger({ function_id: 'configuration::register', payload: { ...definition, ...initial } });
    await this.refresh();
  }

  /** Reads the value on the engine and puts it in force, if it is valid. Throws as `Bus.trigger`. */
  async refresh(): Promise<void> {
    const value = await this.value();
    if (value === undefined) return;
    const faults = this.configuration.give(ID, value).map(told);
    if (faults.join() !== this.faults.join()) for (const fault of faults) this.log('warn', `configuration: ${fault}`, {});
    this.faults = faults;
  }

  /** Registers the entry anew with an engine that is back, and takes its value, while nobody waits for it. */
  registerLater(): void {
    this.register().catch((error: unknown) =>
      this.log('warn', 'the configuration on the engine could not be read', { error: errorMessage(error) }),
    );
  }

  private async value(): Promise<JsonValue | undefined> {
    try {
      const { value } = await this.bus.trigger<{ value?: JsonValue }>({ function_id: 'configuration::get', payload: { id: ID } });
      return value ?? undefined;
    } catch (error) {
      if (UNKNOWN.has(errorCode(error))) return undefined;
      throw error;
    }
  }
}

const told = ({ field, problem }: ConfigurationFault): string =>
  `the entry ${ID} of the engine: ${field === '' ? '' : `${field} `}${problem}`;
