import { plainToInstance } from 'class-transformer';
import { type ValidationError, validateSync } from 'class-validator';
import type { ConfigurationEntry } from './entries/entry.js';
import type { ConfigurationFault, Reading } from './fault.js';
import { type FolderContent, textOf, valueFile } from './folder.js';
import type { Environment } from './references.js';
import { readYaml } from './yaml-file.js';

/** The settings of an entry, whole, or all that is wrong with its file. A missing file means the defaults. */
export function readEntry<Fields extends object, Settings>(
  entry: ConfigurationEntry<Fields, Settings>,
  folder: FolderContent,
  env: Environment,
): Reading<Settings> {
  const file = valueFile(folder.dir, entry.id);
  const content = readYaml(file, textOf(folder, `${entry.id}.yaml`), env);
  if (!content.ok) return content;
  if (content.value === null) return { ok: true, value: entry.settings(new entry.fields()) };

  const fields = plainToInstance(entry.fields, content.value.value, { exposeDefaultValues: true });
  const errors = validateSync(fields, { whitelist: true, forbidNonWhitelisted: true, forbidUnknownValues: true });
  if (errors.length === 0) return { ok: true, value: entry.settings(fields) };
  const { lineOf } = content.value;
  const faults = errors
    .flatMap((error) => faultsOf(error, ''))
    .map(({ field, problem }) => ({ file, field, line: lineOf(field), problem }));
  return { ok: false, faults };
}

function faultsOf(error: ValidationError, above: string): Pick<ConfigurationFault, 'field' | 'problem'>[] {
  const field = above === '' ? error.property : `${above}.${error.property}`;
  const own = error.constraints ?? {};
  const problem = own['whitelistValidation'] === undefined ? own['field'] : 'is not a known field';
  if (problem !== undefined) return [{ field, problem }];
  const inner = (error.children ?? []).flatMap((child) => faultsOf(child, field));
  return inner.length > 0 ? inner : [{ field, problem: 'is not valid' }];
}
