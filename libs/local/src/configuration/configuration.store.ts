import { Inject, Injectable } from '@nestjs/common';
import { errorMessage, type JsonValue } from '#libs/contracts';
import { BusError } from '#libs/iii';
import { compileSchema, definitionText, type EntryDefinition, ownDefinitions } from './definitions.js';
import { type ConfigurationFault, describeFault } from './fault.js';
import { definitionFile, readFolder, textOf, valueFile, withText } from './folder.js';
import { LiveConfiguration, valuesOf } from './live.js';
import { placeholderIn } from './redact.js';
import { type RegisteredEntry, readRegistered } from './registered.js';
import { writeFileAtomic } from './write.js';
import { readYamlValue } from './yaml-file.js';
import { yamlText } from './yaml-text.js';

/** An entry to be registered. */
export type EntryRegistration = EntryDefinition & { initial_value?: JsonValue };

/** Codes of the `configuration::*` functions. They travel as the code of the error itself. */
export type ConfigurationCode = 'NOT_REGISTERED' | 'INVALID_ID' | 'SCHEMA_INVALID' | 'SCHEMA_UNAVAILABLE' | 'NOT_FOUND' | 'ADAPTER_ERROR';
const refusal = (code: ConfigurationCode, detail: string): BusError => new BusError(code, detail);
const described = (faults: readonly ConfigurationFault[]): string => faults.map(describeFault).join('; ');

const ID = /^[a-z0-9_-]{1,64}$/;
/** Names that no file may have on Windows, whatever its extension. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)$/;

/** Reads and writes configuration entries: those of the harness, and those that workers register. */
@Injectable()
export class ConfigurationStore {
  /** Ends when every write that was asked for is done: they happen one after the other. */
  private written: Promise<unknown> = Promise.resolve();

  constructor(@Inject(LiveConfiguration) private readonly live: LiveConfiguration) {}

  /** All entries, those of the harness first. */
  list(): EntryDefinition[] {
    return [...ownDefinitions.values(), ...this.live.registered.all().map(({ definition }) => definition)];
  }

  /** @throws `NOT_FOUND`, `INVALID_ID`, `SCHEMA_UNAVAILABLE`. */
  definition(id: string): EntryDefinition {
    return ownDefinitions.get(checkedId(id)) ?? this.registered(id, 'NOT_FOUND').definition;
  }

  /** The value in force; as it is written when `raw`. @throws `NOT_FOUND`, `INVALID_ID`, `SCHEMA_INVALID`, `SCHEMA_UNAVAILABLE`. */
  get(id: string, raw: boolean): JsonValue {
    if (ownDefinitions.has(checkedId(id))) return raw ? this.asWritten(id) : (valuesOf(this.live.current).get(id) ?? null);
    const entry = this.registered(id, 'NOT_FOUND');
    const value = raw ? entry.raw : entry.value;
    if (value === undefined) throw refusal('SCHEMA_INVALID', described(this.live.registered.faultsOf(id)));
    return value;
  }

  /**
   * Replaces the value of an entry, which is in force when this resolves.
   * @throws `NOT_REGISTERED`, `INVALID_ID`, `SCHEMA_INVALID`, `SCHEMA_UNAVAILABLE`, `ADAPTER_ERROR`.
   */
  set(id: string, value: JsonValue): Promise<{ old_value: JsonValue; new_value: JsonValue }> {
    return this.alone(async () => {
      const isOwn = ownDefinitions.has(checkedId(id));
      const entry = isOwn ? undefined : this.registered(id, 'NOT_REGISTERED');
      const old_value = isOwn ? (valuesOf(this.live.current).get(id) ?? null) : (entry?.value ?? null);
      const text = this.textFor(id, value);
      if (entry === undefined) this.checkOwn(id, text);
      else this.checkWith(id, entry.texts.definition, text);
      await this.save(valueFile(this.live.dir, id), text);
      await this.live.settle();
      return { old_value, new_value: this.get(id, false) };
    });
  }

  /**
   * Registers an entry, or registers it anew; its stored value stays unless an initial value is given.
   * @throws `INVALID_ID`, `SCHEMA_INVALID`, `ADAPTER_ERROR`.
   */
  register({ initial_value, ...definition }: EntryRegistration): Promise<EntryDefinition & { value: JsonValue }> {
    return this.alone(async () => {
      const { id } = definition;
      if (ownDefinitions.has(checkedId(id))) {
        throw refusal('INVALID_ID', `id ${id} is an entry of the harness itself; change its value with configuration::set`);
      }
      const compiled = compileSchema(definition.schema);
      if (!compiled.ok) throw refusal('SCHEMA_INVALID', `schema ${compiled.problem}`);
      const text = definitionText(definition);
      const value = initial_value === undefined ? null : this.textFor(id, initial_value);
      this.checkWith(id, text, value);
      await this.tellingOf(id, async () => {
        if (value !== null) await this.save(valueFile(this.live.dir, id), value);
        await this.save(definitionFile(this.live.dir, id), text);
        await this.live.settle();
      });
      return { ...this.definition(id), value: this.get(id, false) };
    });
  }

  /** Sees to it that a registration is told of, also one that changes nothing. */
  private async tellingOf(id: string, work: () => Promise<void>): Promise<void> {
    let told = false;
    const stop = this.live.onChange((changes) => {
      told ||= changes.some(({ definition }) => definition.id === id);
    });
    try {
      await work();
    } finally {
      stop();
    }
    const entry = this.live.registered.get(id);
    if (told || entry === undefined) return;
    const value = entry.value ?? null;
    this.live.announce({ event_type: 'configuration:updated', definition: entry.definition, old_value: value, new_value: value });
  }

  /** One write after the other, so that each sees what the one before it did. */
  private alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.written.then(work);
    this.written = done.catch(() => undefined);
    return done;
  }

  private registered(id: string, code: 'NOT_FOUND' | 'NOT_REGISTERED'): RegisteredEntry {
    const entry = this.live.registered.get(id);
    if (entry !== undefined) return entry;
    const faults = this.live.registered.faultsOf(id);
    if (faults.length > 0) throw refusal('SCHEMA_UNAVAILABLE', described(faults));
    throw refusal(
      code,
      `there is no configuration entry ${id}; known are ${this.list()
        .map((known) => known.id)
        .join(', ')}`,
    );
  }

  /** What stands in the file of an entry of the harness; `{}` without one. */
  private asWritten(id: string): JsonValue {
    const file = valueFile(this.live.dir, id);
    const text = textOf(readFolder(this.live.dir), `${id}.yaml`);
    const value = text.ok ? readYamlValue(file, text.value ?? '', null) : text;
    if (!value.ok) throw refusal('SCHEMA_INVALID', described(value.faults));
    return value.value ?? {};
  }

  private textFor(id: string, value: JsonValue): string {
    const placeholder = placeholderIn(value);
    if (placeholder !== null) {
      throw refusal(
        'SCHEMA_INVALID',
        `${placeholder || 'value'} is only what stands for a secret in an event; give the secret, or a reference to the environment`,
      );
    }
    const before = textOf(readFolder(this.live.dir), `${id}.yaml`);
    return yamlText(before.ok ? before.value : null, value);
  }

  /** Would this text be in force? */
  private checkOwn(id: string, text: string): void {
    const reading = this.live.preview(withText(readFolder(this.live.dir), `${id}.yaml`, text));
    if (reading.ok) return;
    const file = valueFile(this.live.dir, id);
    const own = reading.faults.filter((fault) => fault.file === file);
    if (own.length > 0) throw refusal('SCHEMA_INVALID', own.map(({ field, problem }) => `${field} ${problem}`.trim()).join('; '));
    throw refusal('ADAPTER_ERROR', `not written, since it could not be in force before this is corrected: ${described(reading.faults)}`);
  }

  private checkWith(id: string, definition: string, text: string | null): void {
    const folder = readFolder(this.live.dir);
    const reading = readRegistered(id, text === null ? folder : withText(folder, `${id}.yaml`, text), definition, this.live.env);
    const faults = reading.ok ? reading.value.faults : reading.faults;
    if (faults.length > 0) throw refusal('SCHEMA_INVALID', faults.map(({ file, problem }) => `${file} ${problem}`).join('; '));
  }

  private async save(file: string, text: string): Promise<void> {
    try {
      await writeFileAtomic(file, text);
    } catch (error) {
      throw refusal('ADAPTER_ERROR', `${file} cannot be written: ${errorMessage(error)}`);
    }
  }
}

function checkedId(id: string): string {
  if (!ID.test(id)) throw refusal('INVALID_ID', 'id must be 1 to 64 characters of a-z, 0-9, _ and -');
  if (DEVICE.test(id)) throw refusal('INVALID_ID', `id ${id} cannot be the name of a file on every system; choose another one`);
  return id;
}
