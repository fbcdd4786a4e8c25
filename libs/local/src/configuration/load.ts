import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, parse } from 'node:path';
import { HarnessError } from '#libs/contracts';
import type { HarnessSettings } from '#libs/turn';
import type { ConfineValues } from '../confine/settings.js';
import type { RouterSettings } from '../router/settings.js';
import { confineEntry, entryIds, harnessEntry, routerEntry } from './entries/entry.js';
import { type ConfigurationFault, describeFault, type Reading } from './fault.js';
import { readEntry } from './read-entry.js';
import type { Environment } from './references.js';

/** The whole configuration of a data folder. */
export interface Configuration {
  harness: HarnessSettings;
  router: RouterSettings;
  confine: ConfineValues;
  /** What deserves a warning but keeps nothing from starting, such as a file whose name is not read. */
  faults: ConfigurationFault[];
}

/**
 * Reads `<configDir>/harness.yaml`, `llm-router.yaml` and `confine.yaml`; a missing one means the defaults.
 * @throws HarnessError `configuration/invalid` with every fault of every file, one a line, when any of them is not valid.
 */
export function loadConfiguration(configDir: string, env: Environment = process.env): Configuration {
  const harness = readEntry(harnessEntry, configDir, env);
  const router = readEntry(routerEntry, configDir, env);
  const confine = readEntry(confineEntry, configDir, env);
  if (!harness.ok || !router.ok || !confine.ok) throw invalid([harness, router, confine]);
  return {
    harness: harness.value,
    router: router.value,
    confine: { ...confine.value, root: confine.value.root ?? harness.value.default_filesystem_root },
    faults: warnings(configDir),
  };
}

function invalid(readings: readonly Reading<unknown>[]): HarnessError {
  const faults = readings.flatMap((reading) => (reading.ok ? [] : reading.faults));
  return new HarnessError('configuration/invalid', faults.map(describeFault).join('\n'));
}

function warnings(configDir: string): ConfigurationFault[] {
  return [...misnamed(configDir), ...exposed(join(configDir, `${routerEntry.id}.yaml`))];
}

/** Files that look like an entry but are not read, such as `harness.yml`. */
function misnamed(configDir: string): ConfigurationFault[] {
  if (!existsSync(configDir)) return [];
  return readdirSync(configDir).flatMap((name) => {
    const { name: stem, ext } = parse(name);
    const id = entryIds.find((known) => known === stem.toLowerCase());
    if (id === undefined || name === `${id}.yaml` || !/^\.(ya?ml|json)$/i.test(ext)) return [];
    return [{ file: join(configDir, name), field: '', problem: `is not read; the file must be called ${id}.yaml` }];
  });
}

const KEY_IN_FILE = /^\s*api_key:\s*['"]?[^\s$'"#]/m;

/** The router's file, when a key stands in it (not a reference to the environment) and others than its owner can read it. */
function exposed(file: string): ConfigurationFault[] {
  if (process.platform === 'win32') return [];
  const mode = statSync(file, { throwIfNoEntry: false })?.mode;
  if (mode === undefined || (mode & 0o077) === 0 || !KEY_IN_FILE.test(readFileSync(file, 'utf8'))) return [];
  return [{ file, field: '', problem: `holds a key but others can read it (mode ${(mode & 0o777).toString(8)}); chmod 600 it` }];
}
