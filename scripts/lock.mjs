// A lock between processes: a folder that holds the pid of its owner. The lock of a process that is gone is taken over.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 100;

const ownerOf = (folder) => {
  try {
    return Number(readFileSync(join(folder, 'pid'), 'utf8'));
  } catch {
    return null; // released between two looks
  }
};

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Takes the lock, or returns false. The folder appears complete, with its pid, in one rename. */
function tryLock(folder) {
  if (existsSync(folder)) return false;
  const own = `${folder}.${process.pid}`;
  rmSync(own, { recursive: true, force: true });
  mkdirSync(own);
  writeFileSync(join(own, 'pid'), String(process.pid));
  try {
    renameSync(own, folder);
    return true;
  } catch (error) {
    rmSync(own, { recursive: true, force: true });
    if (error.code === 'ENOTEMPTY' || error.code === 'EEXIST' || error.code === 'EPERM') return false;
    throw error;
  }
}

/** Moves the lock of a dead owner aside; when it turns out to be a live one's, puts it back. */
function clearDead(folder, pid) {
  const aside = `${folder}.dead.${process.pid}`;
  try {
    renameSync(folder, aside);
  } catch {
    return; // someone else was faster
  }
  if (ownerOf(aside) !== pid) renameSync(aside, folder);
  else rmSync(aside, { recursive: true, force: true });
}

/** Runs `work` while holding the lock folder; waits for a live owner and says so once. */
export async function withLock(folder, say, work) {
  let told = false;
  while (!tryLock(folder)) {
    const pid = ownerOf(folder);
    if (pid !== null && !isAlive(pid)) {
      clearDead(folder, pid);
    } else {
      if (!told && pid !== null) say(`waiting for process ${pid}, which is setting up the same checkout`);
      told ||= pid !== null;
      await sleep(POLL_MS);
    }
  }
  try {
    return await work();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
