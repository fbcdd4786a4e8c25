import { Absences } from './absences.js';
import { entryIds } from './entries/entry.js';
import { describeFault } from './fault.js';
import { definedIds, readFolder } from './folder.js';
import { readConfiguration } from './load.js';
import type { Environment } from './references.js';
import { RegisteredEntries } from './registered.js';

/** What a look at a configuration folder finds. No value of a file is in it. */
export interface ConfigurationCheck {
  /** The names of the files that are read. */
  files: string[];
  /** What keeps a process from starting, and a running one from taking the files; one line each. */
  faults: string[];
  /** What only deserves a warning. */
  warnings: string[];
}

/** Reads a configuration folder as a start would, and says what it finds instead of failing. */
export function checkConfiguration(configDir: string, env: Environment = process.env): ConfigurationCheck {
  const folder = readFolder(configDir);
  const own = readConfiguration(folder, env);
  const registered = new RegisteredEntries(env, new Absences(0, Date.now));
  registered.update(folder);
  const read = new Set([...entryIds, ...definedIds(folder)].map((id) => `${id}.yaml`));
  return {
    files: folder.names.filter((name) => read.has(name)),
    faults: own.ok ? [] : own.faults.map(describeFault),
    warnings: [...(own.ok ? own.value.faults : []), ...registered.faults].map(describeFault),
  };
}
