import { type BigIntStats, constants, type Dirent, existsSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, opendir, readlink, realpath, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { compileGlobs, type PathMatcher } from './glob.js';
import { errnoOf, PathError, pathError } from './path-error.js';
import type { ConfineValues } from './settings.js';

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
const READ_FILE = O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0);
const READ_FOLDER = O_RDONLY | (O_DIRECTORY ?? 0) | (O_NOFOLLOW ?? 0);
/** Where the system names open files; there, names below an open folder cannot be redirected by a later swap. */
const FD_ROOT = existsSync('/proc/self/fd') ? '/proc/self/fd' : null;
/** What the system appends to the name of an open file that has no name any more. */
const GONE = ' (deleted)';
/** System trees that hold no files of a person: refused unless the root itself lies in one, e.g. below /dev/shm. */
const SYSTEM_TREES = ['/proc', '/sys', '/dev'];

/** What a harness stamps on a call to narrow it: paths start at `root`, and stay below it when `boundary` is `workspace`. */
export interface FilesystemScope {
  root?: string | null;
  boundary?: string | null;
}

/** True when `path` is `root` or below it. Both are real paths. */
const isInside = (root: string, path: string): boolean => path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);

/** An open regular file that was inside the root when it was opened. Close its handle. */
export interface OpenFile {
  readonly handle: FileHandle;
  /** Its real path. */
  readonly path: string;
  readonly stat: BigIntStats;
}

/** An open folder; names below it are reached through it and not through its path. */
export class OpenFolder {
  constructor(
    private readonly handle: FileHandle,
    /** Its real path when it was opened. */
    readonly path: string,
  ) {}

  /** A path of the entry `name` that is safe to give to a system call while the folder is open. */
  at(name: string): string {
    return FD_ROOT === null ? join(this.path, name) : `${FD_ROOT}/${this.handle.fd}/${name}`;
  }

  /** Streams the entries in the order of the disk. */
  async *entries(): AsyncGenerator<Dirent> {
    for await (const entry of await opendir(this.at('.'), { bufferSize: 256 })) yield entry;
  }

  /** Makes entries that were created, renamed or removed durable. */
  async sync(): Promise<void> {
    if (process.platform !== 'win32') await this.handle.sync();
  }

  close(): Promise<void> {
    return this.handle.close();
  }
}

/** The part of the file system that one call may use. Paths are relative to `base` or absolute. */
export class Scope {
  private readonly hidden: PathMatcher;

  private constructor(
    /** Real path of the folder that nothing may leave. */
    readonly root: string,
    /** Real path of the folder that relative paths start from. */
    readonly base: string,
    /** Real path of the folder that the globs of hidden files start from, also where a call was narrowed. */
    private readonly configured: string,
    values: ConfineValues,
    /** Real paths of folders that are closed. */
    private readonly closed: readonly string[],
  ) {
    this.hidden = compileGlobs(values.non_accessible_globs);
  }

  /** @throws PathError `off` when file functions are off, `outside` when `narrowed` lies outside the configured root. */
  static async open(values: ConfineValues, narrowed?: FilesystemScope | null): Promise<Scope> {
    if (values.root === 'off') throw new PathError('off', 'file functions are switched off (default_filesystem_root is off)');
    const root = await real(resolve(values.root ?? process.cwd()));
    const closed = await Promise.all(
      (values.closed_folders ?? []).map(async (folder) => (await realOrNull(resolve(folder), folder)) ?? resolve(folder)),
    );
    const wanted = narrowed?.root ?? null;
    if (wanted === null) return new Scope(root, root, root, values, closed);
    const base = await real(resolve(root, wanted));
    if (!isInside(root, base)) throw new PathError('outside', `fs_scope.root ${wanted} is outside ${root}`);
    return new Scope(narrowed?.boundary === 'configured_roots' ? root : base, base, root, values, closed);
  }

  /** True for a real path that may be listed but neither read nor written. */
  isHidden(path: string): boolean {
    return this.closed.some((folder) => isInside(folder, path)) || this.hidden(relative(this.configured, path).split(sep).join('/'));
  }

  /** The real path of something that exists inside the root. */
  async resolve(path: string): Promise<string> {
    const found = await real(this.absolute(path), path);
    this.assertInside(found, path);
    return found;
  }

  /** Opens a regular file for reading. Refuses folders, devices, pipes and hidden files. */
  async openFile(path: string): Promise<OpenFile> {
    const found = await this.resolve(path);
    this.assertAccessible(found, path);
    return this.openReal(found, found, path);
  }

  /** Opens the regular file `name` of an open folder, as `openFile` does. Never follows a symbolic link. */
  openIn(folder: OpenFolder, name: string): Promise<OpenFile> {
    const path = join(folder.path, name);
    this.assertAccessible(path, path);
    return this.openReal(folder.at(name), path, path);
  }

  async openFolder(path: string): Promise<OpenFolder> {
    const found = await this.resolve(path);
    return this.openFolderAt(found, path);
  }

  /** Opens a folder below an open one. Never follows a symbolic link. */
  openFolderIn(folder: OpenFolder, name: string): Promise<OpenFolder> {
    return this.openFolderAt(folder.at(name), join(folder.path, name));
  }

  /**
   * Opens the folder that holds, or will hold, `path`; makes missing folders when `create`. A symbolic link at `path`
   * itself is followed when it leads to something inside the root, and refused when it leads nowhere.
   */
  async openParent(path: string, create: boolean): Promise<{ folder: OpenFolder; name: string }> {
    let target = this.absolute(path);
    try {
      target = await realpath(target);
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw pathError(error, path);
      if ((await lstatOrNull(target)) !== null) throw new PathError('outside', `${path} is a symbolic link that leads nowhere`);
    }
    const missing: string[] = [];
    let existing = dirname(target);
    let found = await realOrNull(existing, path);
    while (found === null) {
      if ((await lstatOrNull(existing)) !== null) throw new PathError('outside', `${path} goes through a symbolic link that leads nowhere`);
      missing.unshift(basename(existing));
      existing = dirname(existing);
      found = await realOrNull(existing, path);
    }
    const whole = join(found, ...missing, basename(target));
    this.assertInside(whole, path);
    this.assertAccessible(whole, path);
    if (whole === this.root) throw new PathError('type', `${path} is the root folder itself`);
    if (missing.length > 0 && !create)
      throw new PathError('missing', `the folder of ${path} does not exist; pass parents: true to make it`);
    let folder = await this.openFolderAt(found, path);
    try {
      for (const name of missing) {
        this.assertAccessible(join(folder.path, name), path);
        await mkdir(folder.at(name)).catch((error: unknown) => {
          if (errnoOf(error) !== 'EEXIST') throw pathError(error, path);
        });
        const parent = folder;
        folder = await this.openFolderIn(parent, name);
        await parent.close();
      }
      this.assertAccessible(join(folder.path, basename(target)), path);
    } catch (error) {
      await folder.close();
      throw error;
    }
    return { folder, name: basename(target) };
  }

  private absolute(path: string): string {
    if (path === '') throw new PathError('invalid', 'path is empty; it should name a file or folder, e.g. "src/main.ts"');
    if (path.includes('\0')) throw new PathError('invalid', 'path holds a NUL character');
    return isAbsolute(path) ? resolve(path) : resolve(this.base, path);
  }

  private assertInside(found: string, path: string): void {
    if (!isInside(this.root, found)) throw new PathError('outside', `${path} is outside ${this.root}`);
    const system = SYSTEM_TREES.find((tree) => isInside(tree, found) && !isInside(tree, this.root));
    if (system !== undefined) throw new PathError('denied', `${path} belongs to the system (${system})`);
  }

  private assertAccessible(found: string, path: string): void {
    if (this.isHidden(found)) throw new PathError('denied', `${path} does not exist or is not accessible`);
  }

  private async openReal(at: string, found: string, path: string): Promise<OpenFile> {
    // Looked at before it is opened, because opening a device or a pipe may already do something.
    const before = await lstat(at).catch((error: unknown) => Promise.reject(pathError(error, path)));
    if (!before.isFile()) throw notAFile(before, path);
    const handle = await open(at, READ_FILE).catch((error: unknown) => Promise.reject(pathError(error, path)));
    try {
      const now = await handle.stat({ bigint: true });
      if (!now.isFile()) throw notAFile(now, path);
      const where = await this.assertStillInside(handle, found, path);
      this.assertAccessible(where, path);
      return { handle, path: where, stat: now };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  private async openFolderAt(at: string, path: string): Promise<OpenFolder> {
    const handle = await open(at, READ_FOLDER).catch((error: unknown) => {
      if (errnoOf(error) === 'ENOTDIR') return Promise.reject(new PathError('type', `${path} is not a folder`, { cause: error }));
      return Promise.reject(pathError(error, path));
    });
    try {
      return new OpenFolder(handle, await this.assertStillInside(handle, at, path));
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Asks where the open file really is, so that a path swapped between check and open does not win. */
  private async assertStillInside(handle: FileHandle, found: string, path: string): Promise<string> {
    if (FD_ROOT !== null) {
      const named = await readlink(`${FD_ROOT}/${handle.fd}`);
      const where = named.endsWith(GONE) && (await handle.stat()).nlink === 0 ? named.slice(0, -GONE.length) : named;
      this.assertInside(where, path);
      return where;
    }
    const where = await real(found, path);
    this.assertInside(where, path);
    const [a, b] = await Promise.all([handle.stat({ bigint: true }), stat(where, { bigint: true })]);
    if (a.ino !== b.ino || a.dev !== b.dev) throw new PathError('outside', `${path} changed while it was opened`);
    return where;
  }
}

function notAFile(found: { isDirectory(): boolean; isSymbolicLink(): boolean }, path: string): PathError {
  if (found.isSymbolicLink()) return new PathError('outside', `${path} is or became a symbolic link`);
  return new PathError(
    'type',
    found.isDirectory() ? `${path} is a folder, not a file` : `${path} is not a regular file (a device, pipe or socket)`,
  );
}

async function real(path: string, shown = path): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    throw pathError(error, shown);
  }
}

async function realOrNull(path: string, shown: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null;
    throw pathError(error, shown);
  }
}

async function lstatOrNull(path: string): Promise<Awaited<ReturnType<typeof lstat>> | null> {
  try {
    return await lstat(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null;
    throw error;
  }
}
