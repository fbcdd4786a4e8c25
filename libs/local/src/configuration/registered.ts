import { isDeepStrictEqual } from 'node:util';
import type { JsonValue } from '#libs/contracts';
import type { Absences } from './absences.js';
import { compileSchema, type EntryDefinition, ownDefinitions, parseDefinition, type ValueCheck } from './definitions.js';
import type { ConfigurationFault, Reading } from './fault.js';
import { definedIds, definitionFile, type FolderContent, textOf, valueFile } from './folder.js';
import type { Environment } from './references.js';
import { readYamlValue } from './yaml-file.js';

/** What became of an entry. Values are expanded, and null when there is none. */
export interface EntryChange {
  event_type: 'configuration:registered' | 'configuration:updated' | 'configuration:deleted';
  definition: EntryDefinition;
  old_value: JsonValue;
  new_value: JsonValue;
}

/** An entry that a worker has registered, as it was last valid. */
export interface RegisteredEntry {
  definition: EntryDefinition;
  check: ValueCheck;
  /** The texts of its two files. */
  texts: { definition: string; value: string | null };
  /** The value as it is written and with references expanded; undefined when the file has never been valid. */
  raw: JsonValue | undefined;
  value: JsonValue | undefined;
}

/** The entries of other workers: a YAML file for the value and `<id>.schema.json` for the definition. Each is valid or not by itself. */
export class RegisteredEntries {
  private readonly byId = new Map<string, RegisteredEntry>();
  private readonly wrong = new Map<string, readonly ConfigurationFault[]>();

  constructor(
    private readonly env: Environment,
    private readonly absences: Absences,
  ) {}

  get(id: string): RegisteredEntry | undefined {
    return this.byId.get(id);
  }

  all(): RegisteredEntry[] {
    return [...this.byId.values()].sort((a, b) => (a.definition.id < b.definition.id ? -1 : 1));
  }

  /** What is wrong with the files of an entry. */
  faultsOf(id: string): readonly ConfigurationFault[] {
    return this.wrong.get(id) ?? [];
  }

  get faults(): ConfigurationFault[] {
    return [...this.wrong.values()].flat();
  }

  /** Takes what a folder says; returns what has changed, and in how many ms to look again (0 = no need). */
  update(folder: FolderContent): { changes: EntryChange[]; waitMs: number } {
    const changes: EntryChange[] = [];
    let waitMs = 0;
    const ids = new Set([...this.byId.keys(), ...this.wrong.keys(), ...definedIds(folder)]);
    for (const id of ids) {
      if (ownDefinitions.has(id)) continue;
      const before = this.byId.get(id);
      const names = { definition: `${id}.schema.json`, value: `${id}.yaml` };
      const wait = Math.max(
        this.absences.remaining(names.definition, before?.texts.definition ?? null, textOf(folder, names.definition)),
        this.absences.remaining(names.value, before?.texts.value ?? null, textOf(folder, names.value)),
      );
      waitMs = Math.max(waitMs, wait);
      if (wait > 0) continue;
      const change = this.updateOne(id, folder, before);
      if (change !== null) changes.push(change);
    }
    return { changes, waitMs };
  }

  private updateOne(id: string, folder: FolderContent, before: RegisteredEntry | undefined): EntryChange | null {
    const text = textOf(folder, `${id}.schema.json`);
    if (text.ok && text.value === null) {
      this.wrong.delete(id);
      this.byId.delete(id);
      if (before === undefined) return null;
      return { event_type: 'configuration:deleted', definition: before.definition, old_value: before.value ?? null, new_value: null };
    }
    const reading = text.ok ? readRegistered(id, folder, text.value ?? '', this.env) : text;
    const faults = reading.ok ? reading.value.faults : reading.faults;
    if (faults.length > 0) this.wrong.set(id, faults);
    else this.wrong.delete(id);
    if (!reading.ok) return null;
    const { entry } = reading.value;
    const broken = faults.length > 0;
    const after = broken && before !== undefined ? { ...entry, raw: before.raw, value: before.value, texts: before.texts } : entry;
    this.byId.set(id, after);
    const values = { old_value: before?.value ?? null, new_value: after.value ?? null };
    if (before === undefined) return { event_type: 'configuration:registered', definition: after.definition, ...values };
    const same = isDeepStrictEqual(before.definition, after.definition) && isDeepStrictEqual(values.old_value, values.new_value);
    return same ? null : { event_type: 'configuration:updated', definition: after.definition, ...values };
  }
}

/** Reads an entry from a folder. A fault of its value leaves the value undefined; one of its definition leaves no entry. */
export function readRegistered(
  id: string,
  folder: FolderContent,
  definitionText: string,
  env: Environment,
): Reading<{ entry: RegisteredEntry; faults: ConfigurationFault[] }> {
  const ownFile = definitionFile(folder.dir, id);
  const definition = parseDefinition(ownFile, id, definitionText);
  if (!definition.ok) return definition;
  const compiled = compileSchema(definition.value.schema);
  if (!compiled.ok) return { ok: false, faults: [{ file: ownFile, field: 'schema', problem: compiled.problem }] };

  const text = textOf(folder, `${id}.yaml`);
  const value = text.ok ? readValue(valueFile(folder.dir, id), text.value, compiled.check, env) : text;
  const texts = { definition: definitionText, value: text.ok ? text.value : null };
  const given = value.ok ? value.value : { raw: undefined, value: undefined };
  const entry: RegisteredEntry = { definition: definition.value, check: compiled.check, texts, ...given };
  return { ok: true, value: { entry, faults: value.ok ? [] : value.faults } };
}

function readValue(file: string, text: string | null, check: ValueCheck, env: Environment): Reading<{ raw: JsonValue; value: JsonValue }> {
  if (text === null) return { ok: true, value: { raw: null, value: null } };
  const raw = readYamlValue(file, text, null);
  const expanded = readYamlValue(file, text, env);
  if (!raw.ok) return raw;
  if (!expanded.ok) return expanded;
  const problem = check(expanded.value);
  if (problem !== null) return { ok: false, faults: [{ file, field: '', problem: `does not fit its schema: ${problem}` }] };
  return { ok: true, value: { raw: raw.value, value: expanded.value } };
}
