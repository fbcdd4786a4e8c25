import { statSync } from 'node:fs';
import { join, parse } from 'node:path';
import { HarnessError } from '#libs/contracts';
import type { HarnessSettings } from '#libs/turn';
import type { ApprovalDefaults } from '../approval/settings.js';
import type { ConfineValues } from '../confine/settings.js';
import type { RouterSettings } from '../router/settings.js';
import { approvalEntry, confineEntry, entryIds, harnessEntry, routerEntry } from './entries/entry.js';
import { type ConfigurationFault, describeFault, type Reading } from './fault.js';
import { type FolderContent, readFolder, textOf, valueFile } from './folder.js';
import { readEntry } from './read-entry.js';
import type { Environment } from './references.js';

/** The whole configuration of a data folder. */
export interface Configuration {
  harness: HarnessSettings;
  router: RouterSettings;
  confine: ConfineValues;
  approval: ApprovalDefaults;
  /** What deserves a warning but keeps nothing from starting, such as a file whose name is not read. */
  faults: ConfigurationFault[];
}

/**
 * Reads `<configDir>/harness.yaml`, `llm-router.yaml`, `confine.yaml` and `approval.yaml`; a missing one means the defaults.
 * @throws HarnessError `configuration/invalid` with every fault of every file, one a line, when any of them is not valid.
 */
export function loadConfiguration(configDir: string, env: Environment = process.env): Configuration {
  const reading = readConfiguration(readFolder(configDir), env);
  if (!reading.ok) throw invalid(reading.faults);
  return reading.value;
}

/** What the files of a folder say: the whole configuration, or every fault of every file. */
export function readConfiguration(folder: FolderContent, env: Environment): Reading<Configuration> {
  const harness = readEntry(harnessEntry, folder, env);
  const router = readEntry(routerEntry, folder, env);
  const confine = readEntry(confineEntry, folder, env);
  const approval = readEntry(approvalEntry, folder, env);
  if (!harness.ok || !router.ok || !confine.ok || !approval.ok) {
    return { ok: false, faults: [harness, router, confine, approval].flatMap((reading) => (reading.ok ? [] : reading.faults)) };
  }
  return {
    ok: true,
    value: {
      harness: harness.value,
      router: router.value,
      confine: { ...confine.value, root: confine.value.root ?? harness.value.default_filesystem_root },
      approval: approval.value,
      faults: [...misnamed(folder), ...exposed(folder)],
    },
  };
}

/** The error that says what is wrong, one fault a line. */
export const invalid = (faults: readonly ConfigurationFault[]): HarnessError =>
  new HarnessError('configuration/invalid', faults.map(describeFault).join('\n'));

/** Files that look like an entry but are not read, such as `harness.yml`. */
function misnamed({ dir, names }: FolderContent): ConfigurationFault[] {
  return names.flatMap((name) => {
    const { name: stem, ext } = parse(name);
    const id = entryIds.find((known) => known === stem.toLowerCase());
    if (id === undefined || name === `${id}.yaml` || !/^\.(ya?ml|json)$/i.test(ext)) return [];
    return [{ file: join(dir, name), field: '', problem: `is not read; the file must be called ${id}.yaml` }];
  });
}

const KEY_IN_FILE = /^\s*api_key:\s*['"]?[^\s$'"#]/m;

/** The router's file, when a key stands in it (not a reference to the environment) and others than its owner can read it. */
function exposed(folder: FolderContent): ConfigurationFault[] {
  if (process.platform === 'win32') return [];
  const file = valueFile(folder.dir, routerEntry.id);
  const text = textOf(folder, `${routerEntry.id}.yaml`);
  if (!text.ok || text.value === null || !KEY_IN_FILE.test(text.value)) return [];
  const mode = statSync(file, { throwIfNoEntry: false })?.mode;
  if (mode === undefined || (mode & 0o077) === 0) return [];
  return [{ file, field: '', problem: `holds a key but others can read it (mode ${(mode & 0o777).toString(8)}); chmod 600 it` }];
}
