import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { link, lstat, open, rename, unlink } from 'node:fs/promises';
import { errnoOf, type OpenFolder } from '../../confine/index.js';
import { CoderError } from '../errors.js';

export interface WriteOptions {
  /** Permission bits of the file; what a model writes never runs as somebody else, so set-id bits are not among them. */
  mode: number;
  /** Owner to keep, where the process may give files away. */
  owner?: { uid: number; gid: number };
  /** Fail when there is something of that name. */
  exclusive: boolean;
}

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0);
const CHUNK = 1_048_576;

/**
 * Writes a file so that its old or its new content is there at any moment, also after a power cut: a temporary file
 * beside it, flushed, takes its name. @throws CoderError C213 when `exclusive` and the name is taken.
 */
export async function writeAtomic(folder: OpenFolder, name: string, bytes: Buffer, options: WriteOptions): Promise<void> {
  const temporary = folder.at(`.${randomBytes(8).toString('hex')}.tmp`);
  const target = folder.at(name);
  const handle = await open(temporary, CREATE, 0o600);
  let renamed = false;
  try {
    try {
      for (let at = 0; at < bytes.length; at += CHUNK) await handle.writeFile(bytes.subarray(at, at + CHUNK));
      await keepOwner(handle, options.owner);
      await handle.chmod(options.mode);
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (options.exclusive) await linkExclusive(temporary, target, name);
    else {
      await rename(temporary, target);
      renamed = true;
    }
    await folder.sync();
  } finally {
    if (!renamed) await unlink(temporary).catch(ignoreMissing);
  }
}

/** Gives the finished file its name only if nobody has it. */
async function linkExclusive(temporary: string, target: string, name: string): Promise<void> {
  try {
    await link(temporary, target);
  } catch (error) {
    switch (errnoOf(error)) {
      case 'EEXIST':
        throw new CoderError('C213', `${name} exists already; pass overwrite: true to replace it`, { cause: error });
      case 'EPERM':
      case 'ENOTSUP':
      case 'EOPNOTSUPP':
      case 'ENOSYS': {
        // No hard links on this disk: a look before the rename is the best there is.
        const taken = await lstat(target).then(
          () => true,
          () => false,
        );
        if (taken) throw new CoderError('C213', `${name} exists already; pass overwrite: true to replace it`, { cause: error });
        return rename(temporary, target);
      }
      default:
        throw error;
    }
  }
}

async function keepOwner(handle: Awaited<ReturnType<typeof open>>, owner: WriteOptions['owner']): Promise<void> {
  if (owner === undefined) return;
  const { uid, gid } = await handle.stat();
  if (uid === owner.uid && gid === owner.gid) return;
  try {
    await handle.chown(owner.uid, owner.gid);
  } catch (error) {
    // Only a privileged process may give files away; the content matters more than the owner.
    if (errnoOf(error) !== 'EPERM') throw error;
  }
}

function ignoreMissing(error: unknown): void {
  if (errnoOf(error) !== 'ENOENT') throw error;
}
