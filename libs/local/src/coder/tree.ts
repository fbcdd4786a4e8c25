import { basename, join } from 'node:path';
import { errnoOf, type OpenFolder, PathError, type Scope } from '../confine/index.js';
import { isDefaultExclude } from './excludes.js';
import { type EntryKind, entriesOf, statOf } from './folder.js';

export interface TreeRequest {
  path?: string;
  max_depth?: number | null;
  per_folder_limit?: number | null;
  use_default_excludes?: boolean;
}
/** Why the children of a folder are not all there. */
export interface Truncation {
  reason: 'per_folder_limit' | 'max_depth' | 'default_exclude' | 'node_limit' | 'unreadable';
  shown: number;
  total: number | null;
  hint: string;
}
export interface TreeNode {
  name: string;
  kind: EntryKind;
  size: number;
  mtime: number;
  non_accessible: boolean;
  children?: TreeNode[];
  truncated?: Truncation;
}

export const DEFAULT_DEPTH = 4;
export const MAX_DEPTH = 32;
export const DEFAULT_PER_FOLDER = 50;
/** Nodes of one tree, whatever the other limits are. */
export const MAX_NODES = 5_000;

/** A folder with what is below it, as far as the limits allow. */
export async function tree(scope: Scope, request: TreeRequest, signal: AbortSignal): Promise<{ path: string; root: TreeNode }> {
  const walk = new TreeWalk(scope, request, signal);
  const folder = await scope.openFolder(request.path ?? '.');
  try {
    const root: TreeNode = {
      name: basename(folder.path),
      kind: 'dir',
      ...(await statOf(folder, '.')),
      non_accessible: scope.isHidden(folder.path),
    };
    await walk.fill(root, folder, 0);
    return { path: folder.path, root };
  } finally {
    await folder.close();
  }
}

class TreeWalk {
  private readonly maxDepth: number;
  private readonly perFolder: number;
  private readonly excludes: boolean;
  private left = MAX_NODES;

  constructor(
    private readonly scope: Scope,
    request: TreeRequest,
    private readonly signal: AbortSignal,
  ) {
    this.maxDepth = Math.min(request.max_depth ?? DEFAULT_DEPTH, MAX_DEPTH);
    this.perFolder = Math.max(1, request.per_folder_limit ?? DEFAULT_PER_FOLDER);
    this.excludes = request.use_default_excludes ?? true;
  }

  async fill(node: TreeNode, folder: OpenFolder, depth: number): Promise<void> {
    this.signal.throwIfAborted();
    if (depth >= this.maxDepth) {
      node.truncated = truncation('max_depth', 0, null, 'ask for this folder with coder::tree or coder::list-folder');
      return;
    }
    const { entries, total } = await entriesOf(folder, this.signal);
    const shown = entries.slice(0, Math.min(this.perFolder, this.left));
    this.left -= shown.length;
    node.children = [];
    for (const { name, kind } of shown) {
      const path = join(folder.path, name);
      const child: TreeNode = { name, kind, ...(await statOf(folder, name)), non_accessible: this.scope.isHidden(path) };
      node.children.push(child);
      if (kind === 'dir') await this.descend(child, folder, depth + 1);
    }
    if (shown.length < total) {
      const reason = shown.length < this.perFolder ? 'node_limit' : 'per_folder_limit';
      node.truncated = truncation(reason, shown.length, total, 'page through this folder with coder::list-folder');
    }
  }

  private async descend(node: TreeNode, parent: OpenFolder, depth: number): Promise<void> {
    if (this.excludes && isDefaultExclude(node.name)) {
      node.truncated = truncation('default_exclude', 0, null, 'pass use_default_excludes: false to look into it');
      return;
    }
    try {
      const folder = await this.scope.openFolderIn(parent, node.name);
      try {
        await this.fill(node, folder, depth);
      } finally {
        await folder.close();
      }
    } catch (error) {
      if (!(error instanceof PathError) && errnoOf(error) === undefined) throw error;
      node.truncated = truncation('unreadable', 0, null, error instanceof Error ? error.message : String(error));
    }
  }
}

const truncation = (reason: Truncation['reason'], shown: number, total: number | null, hint: string): Truncation => ({
  reason,
  shown,
  total,
  hint,
});
