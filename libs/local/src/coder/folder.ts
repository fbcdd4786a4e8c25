import type { Dirent } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { errnoOf, type OpenFolder } from '../confine/index.js';

/** What an entry of a folder is; a symbolic link is not followed. */
export type EntryKind = 'file' | 'dir' | 'symlink' | 'other';
export interface NamedEntry {
  name: string;
  kind: EntryKind;
}

/** Entries of one folder that are kept in memory; more are counted only. */
const MAX_FOLDER_ENTRIES = 100_000;

const byName = (a: NamedEntry, b: NamedEntry): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

function kindOf(entry: Pick<Dirent, 'isFile' | 'isDirectory' | 'isSymbolicLink'>): EntryKind {
  if (entry.isFile()) return 'file';
  if (entry.isDirectory()) return 'dir';
  return entry.isSymbolicLink() ? 'symlink' : 'other';
}

/** The entries of a folder by name, and how many it has in all. */
export async function entriesOf(folder: OpenFolder, signal: AbortSignal): Promise<{ entries: NamedEntry[]; total: number }> {
  const entries: NamedEntry[] = [];
  let total = 0;
  for await (const entry of folder.entries()) {
    if (++total <= MAX_FOLDER_ENTRIES) entries.push({ name: entry.name, kind: kindOf(entry) });
    if (total % 1_000 === 0) signal.throwIfAborted();
  }
  return { entries: entries.sort(byName), total };
}

/** Size in bytes and time of change in seconds of an entry; zeros when it has just gone. */
export async function statOf(folder: OpenFolder, name: string): Promise<{ size: number; mtime: number }> {
  try {
    const found = await lstat(folder.at(name));
    return { size: found.size, mtime: Math.floor(found.mtimeMs / 1_000) };
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return { size: 0, mtime: 0 };
    throw error;
  }
}
