import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Reading } from './fault.js';

/** What is in a configuration folder at one moment. Nothing of it has been checked. */
export interface FolderContent {
  dir: string;
  /** False when there is no such folder, or it cannot be looked into. */
  isThere: boolean;
  /** The names of everything in it. */
  names: readonly string[];
  /** The texts of the files that may belong to an entry, by name; null = gone since the folder was listed. */
  texts: ReadonlyMap<string, Reading<string | null>>;
}

const VALUE = /^([a-z0-9_-]{1,64})\.yaml$/;
const DEFINITION = /^([a-z0-9_-]{1,64})\.schema\.json$/;
/** A configuration file larger than this is not read. */
const MAX_FILE_BYTES = 4 * 1_048_576;

/** The file of the value of an entry. */
export const valueFile = (dir: string, id: string): string => join(dir, `${id}.yaml`);
/** The file that says what an entry is, for one that a worker has registered. */
export const definitionFile = (dir: string, id: string): string => join(dir, `${id}.schema.json`);

/** The ids of the entries that are registered in a folder. */
export const definedIds = (folder: FolderContent): string[] => folder.names.flatMap((name) => DEFINITION.exec(name)?.[1] ?? []).sort();

const MISSING: Reading<string | null> = { ok: true, value: null };
/** The text of a file of the folder; null when there is no such file. */
export const textOf = (folder: FolderContent, name: string): Reading<string | null> => folder.texts.get(name) ?? MISSING;

/** The same folder with another text for one of its files. */
export function withText(folder: FolderContent, name: string, text: string): FolderContent {
  const texts = new Map(folder.texts).set(name, { ok: true, value: text });
  return { ...folder, isThere: true, names: [...new Set([...folder.names, name])].sort(), texts };
}

/** Reads all files of a folder that may belong to an entry. A file that cannot be read is a fault in its place. */
export function readFolder(dir: string): FolderContent {
  let names: string[];
  try {
    names = readdirSync(dir).sort();
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT') return { dir, isThere: false, names: [], texts: new Map() };
    // As a fault of an entry, so that nobody takes the defaults for what the folder says.
    const unreadable: Reading<string | null> = { ok: false, faults: [{ file: dir, field: '', problem: `cannot be read (${code})` }] };
    return { dir, isThere: false, names: [], texts: new Map([['harness.yaml', unreadable]]) };
  }
  const ours = names.filter((name) => VALUE.test(name) || DEFINITION.test(name));
  return { dir, isThere: true, names, texts: new Map(ours.map((name) => [name, readText(join(dir, name))])) };
}

const codeOf = (error: unknown): string => String((error as NodeJS.ErrnoException).code ?? 'unknown error');

function readText(file: string): Reading<string | null> {
  const fault = (problem: string): Reading<string | null> => ({ ok: false, faults: [{ file, field: '', problem }] });
  let bytes: Buffer;
  try {
    const stat = statSync(file);
    if (!stat.isFile()) return fault('must be a plain file'); // a device or pipe may never end
    const { size } = stat;
    if (size > MAX_FILE_BYTES) return fault(`must be smaller than ${MAX_FILE_BYTES} bytes, but has ${size}`);
    bytes = readFileSync(file);
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? MISSING : fault(`cannot be read (${codeOf(error)})`);
  }
  try {
    return { ok: true, value: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return fault('is not UTF-8 text; save it as UTF-8');
  }
}

/** Changes whenever a file of the folder does: names, sizes and times, through links. Cheap enough to be asked often. */
export function fingerprint(dir: string): string {
  try {
    const { ino, dev } = statSync(dir);
    const files = readdirSync(dir).filter((name) => VALUE.test(name) || DEFINITION.test(name));
    const stats = files.map((name) => [name, statSync(join(dir, name), { throwIfNoEntry: false })] as const);
    return `${dev}/${ino}:${stats.map(([name, stat]) => `${name}=${stat?.ino ?? 0},${stat?.size ?? 0},${stat?.mtimeMs ?? 0}`).join(';')}`;
  } catch (error) {
    return codeOf(error);
  }
}
