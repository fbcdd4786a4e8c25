import { join } from 'node:path';
import type { Scope } from '../confine/index.js';
import { type EntryKind, entriesOf, statOf } from './folder.js';

export interface ListFolderRequest {
  path?: string;
  page?: number;
  page_size?: number | null;
}
export interface FolderEntry {
  name: string;
  kind: EntryKind;
  size: number;
  mtime: number;
  /** True when the entry is listed but may be neither read nor written. */
  non_accessible: boolean;
}
export interface ListFolderResult {
  path: string;
  entries: FolderEntry[];
  page: number;
  page_size: number;
  total: number;
  has_more: boolean;
}

export const DEFAULT_PAGE_SIZE = 100;
export const MAX_PAGE_SIZE = 1_000;

/** One page of a folder, by name. */
export async function listFolder(scope: Scope, request: ListFolderRequest, signal: AbortSignal): Promise<ListFolderResult> {
  const page = Math.max(1, request.page ?? 1);
  const pageSize = Math.min(Math.max(1, request.page_size ?? DEFAULT_PAGE_SIZE), MAX_PAGE_SIZE);
  const folder = await scope.openFolder(request.path ?? '.');
  try {
    const { entries, total } = await entriesOf(folder, signal);
    const shown = entries.slice((page - 1) * pageSize, page * pageSize);
    const listed: FolderEntry[] = [];
    for (const entry of shown) {
      signal.throwIfAborted();
      listed.push({ ...entry, ...(await statOf(folder, entry.name)), non_accessible: scope.isHidden(join(folder.path, entry.name)) });
    }
    return { path: folder.path, entries: listed, page, page_size: pageSize, total, has_more: page * pageSize < entries.length };
  } finally {
    await folder.close();
  }
}
