import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { JsonValue } from '#libs/contracts';
import { Absences, GRACE_MS } from './absences.js';
import { ownDefinitions } from './definitions.js';
import { entryIds } from './entries/entry.js';
import type { ConfigurationFault } from './fault.js';
import { type FolderContent, readFolder, textOf, valueFile, withText } from './folder.js';
import { type Configuration, invalid, readConfiguration } from './load.js';
import type { Environment } from './references.js';
import { type EntryChange, RegisteredEntries } from './registered.js';

export interface LiveOptions {
  env?: Environment;
  /** How long a file may be away, or empty, before that counts, in ms; 2000 by default. */
  graceMs?: number;
  now?: () => number;
}

/**
 * The configuration in force. What is read anew replaces it whole, or not at all: while any file has a fault, the last good
 * values stay and `faults` says what is wrong.
 */
export class LiveConfiguration {
  readonly registered: RegisteredEntries;
  /** Where references to the environment are looked up. */
  readonly env: Environment;
  private readonly absences: Absences;
  private readonly listeners = new Set<(changes: readonly EntryChange[]) => void>();
  private configuration: Configuration;
  /** The folder that the values in force come from. */
  private accepted: FolderContent;
  private problems: readonly ConfigurationFault[] = [];
  private restart: readonly ConfigurationFault[] = [];
  /** Texts from elsewhere that stand in place of files. */
  private readonly given = new Map<string, string>();
  /** Asked before the folder is read for a caller that needs the newest values: where values come from elsewhere. */
  refresh: () => Promise<void> = () => Promise.resolve();

  /** Reads the folder. @throws HarnessError `configuration/invalid` with every fault, when any file is not valid. */
  constructor(
    readonly dir: string,
    options: LiveOptions = {},
  ) {
    this.env = options.env ?? process.env;
    this.absences = new Absences(options.graceMs ?? GRACE_MS, options.now ?? Date.now);
    this.registered = new RegisteredEntries(this.env, this.absences);
    this.accepted = readFolder(dir);
    const reading = readConfiguration(this.accepted, this.env);
    if (!reading.ok) throw invalid(reading.faults);
    this.configuration = reading.value;
    this.registered.update(this.accepted);
  }

  /** The values in force. Ask for them where they are used, and do not keep them. */
  get current(): Configuration {
    return this.configuration;
  }

  /** The keys that the configuration holds. */
  get secrets(): readonly string[] {
    return Object.values(this.configuration.router.providers).flatMap(({ api_key }) => api_key ?? []);
  }

  /** What is wrong now: files that are not in force, settings that wait for a restart, and what only deserves a warning. */
  get faults(): readonly ConfigurationFault[] {
    return [...this.problems, ...this.restart, ...this.configuration.faults, ...this.registered.faults];
  }

  /** Calls back after every change of a value; returns what ends that. */
  onChange(listener: (changes: readonly EntryChange[]) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** What would be in force with this folder. Changes nothing. */
  preview(folder: FolderContent): ReturnType<typeof readConfiguration> {
    return readConfiguration(folder, this.env);
  }

  /**
   * Reads the folder again and takes what it says, if all of it is valid. Returns in how many ms to do so again, because a
   * file is away that may only be being saved; 0 = no need.
   */
  read(): number {
    const folder = this.folder();
    const wait = this.absenceOf(folder);
    const changes = wait > 0 ? [] : this.take(folder);
    const registered = folder.isThere ? this.registered.update(folder) : { changes: [], waitMs: 0 };
    this.tell([...changes, ...registered.changes]);
    return Math.max(wait, registered.waitMs);
  }

  /** The same, until no file is away that may come back. What is wrong then is in `faults`. */
  async settle(): Promise<void> {
    for (let wait = this.read(); wait > 0; wait = this.read()) await delay(wait, undefined, { ref: false });
  }

  /**
   * The same, for callers that need the new values.
   * @throws HarnessError `configuration/invalid` when a file is not valid; the last good values stay then.
   */
  async reload(): Promise<void> {
    await this.refresh();
    await this.settle();
    if (this.problems.length > 0) throw invalid(this.problems);
  }

  /** Takes the value of an entry from elsewhere, in place of its file; what is wrong with it otherwise, and then nothing changes. */
  give(id: string, value: JsonValue): readonly ConfigurationFault[] {
    const name = `${id}.yaml`;
    const text = JSON.stringify(value); // which is YAML too
    const reading = this.preview(withText(this.folder(), name, text));
    if (!reading.ok) return reading.faults;
    this.given.set(name, text);
    this.read();
    return [];
  }

  /** Tells the listeners of a change that reading the folder does not show, such as a registration that is repeated. */
  announce(change: EntryChange): void {
    this.tell([change]);
  }

  private folder(): FolderContent {
    return [...this.given].reduce((folder, [name, text]) => withText(folder, name, text), readFolder(this.dir));
  }

  private absenceOf(folder: FolderContent): number {
    const waits = entryIds.map((id) => this.absences.remaining(`${id}.yaml`, this.acceptedText(id), textOf(folder, `${id}.yaml`)));
    return Math.max(...waits);
  }

  private take(folder: FolderContent): EntryChange[] {
    if (!folder.isThere && entryIds.some((id) => Absences.isAbsent(this.acceptedText(id), textOf(folder, `${id}.yaml`)))) {
      const problem = 'is gone; the last values stay in force until it is back, or until the next start';
      this.problems = [{ file: this.dir, field: '', problem }];
      return [];
    }
    const reading = readConfiguration(folder, this.env);
    this.problems = reading.ok ? [] : reading.faults;
    if (!reading.ok) return [];
    this.accepted = folder;
    const before = this.configuration;
    const after = this.withoutRestart(reading.value, before);
    const [old, now] = [valuesOf(before), valuesOf(after)];
    const changed = entryIds.filter((id) => !isDeepStrictEqual(old.get(id), now.get(id)));
    this.configuration = changed.length === 0 ? { ...before, faults: after.faults } : after;
    return changed.map((id) => ({
      event_type: 'configuration:updated',
      definition: ownDefinitions.get(id) as EntryChange['definition'],
      old_value: old.get(id) ?? null,
      new_value: now.get(id) ?? null,
    }));
  }

  /** Keeps what only a start can change, and says so. */
  private withoutRestart(read: Configuration, before: Configuration): Configuration {
    const { durability } = before.harness;
    if (read.harness.durability === durability) {
      this.restart = [];
      return read;
    }
    const problem = `is "${read.harness.durability}" from the next start on; "${durability}" stays in force until then`;
    this.restart = [{ file: valueFile(this.dir, 'harness'), field: 'durability', problem }];
    return { ...read, harness: { ...read.harness, durability } };
  }

  private acceptedText(id: string): string | null {
    const text = textOf(this.accepted, `${id}.yaml`);
    return text.ok ? text.value : null;
  }

  private tell(changes: readonly EntryChange[]): void {
    if (changes.length === 0) return;
    for (const listener of [...this.listeners]) listener(changes);
  }
}

/** The values of the entries of the harness itself as plain JSON, keys included. */
export const valuesOf = ({ harness, router, confine }: Configuration): Map<string, JsonValue> =>
  new Map([
    ['harness', structuredClone(harness) as unknown as JsonValue],
    ['llm-router', structuredClone(router) as unknown as JsonValue],
    ['confine', structuredClone(confine) as unknown as JsonValue],
  ]);
