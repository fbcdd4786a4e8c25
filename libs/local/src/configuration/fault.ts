/** One thing that is wrong with a configuration file. Never holds a value of the file, which may be a secret. */
export interface ConfigurationFault {
  /** Path of the file. */
  file: string;
  /** Dotted path of the field, e.g. `settings.retry_max`; empty when it is about the whole file. */
  field: string;
  /** 1-based; absent when the fault has no place of its own. */
  line?: number;
  /** E.g. `must be a whole number from 1 to 10`. */
  problem: string;
}

/** A fault as one line of text: `<file>:<line>: <field> <problem>`. */
export function describeFault(fault: ConfigurationFault): string {
  const place = fault.line === undefined ? fault.file : `${fault.file}:${fault.line}`;
  return `${place}: ${fault.field === '' ? '' : `${fault.field} `}${fault.problem}`;
}

/** What reading gives: a whole valid value, or what is wrong. Never half of a value. */
export type Reading<T> = { ok: true; value: T } | { ok: false; faults: ConfigurationFault[] };
