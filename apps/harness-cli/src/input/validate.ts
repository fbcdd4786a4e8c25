import { validateSync } from 'class-validator';
import { usageError } from '../cli/exit.js';

/** Fills an input class from parsed options and checks it; throws a usage error that names the first fault of each option. */
export function checked<T extends object>(type: new () => T, values: Readonly<Record<string, unknown>>): T {
  const input = Object.assign(new type(), Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)));
  const faults = validateSync(input, { stopAtFirstError: true, forbidUnknownValues: false }).map(
    (fault) => Object.values(fault.constraints ?? {})[0] ?? `${fault.property} is not valid`,
  );
  if (faults.length > 0) throw usageError(faults.join('\n'));
  return input;
}
