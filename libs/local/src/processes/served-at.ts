import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { DATABASE_FILE, openDatabase } from '../sqlite/index.js';
import { type GatewayAddress, ProcessRegistry } from './registry.js';

/**
 * Where the worker that serves a data folder can be reached; null when none with a gateway lives on this host. Throws as
 * `openDatabase` does.
 */
export async function servedAt(dataDir: string): Promise<GatewayAddress | null> {
  const isThere = await access(join(dataDir, DATABASE_FILE)).then(
    () => true,
    () => false,
  );
  if (!isThere) return null;
  const db = await openDatabase({ dataDir, mustExist: true });
  try {
    return new ProcessRegistry(db).gatewayHere(Date.now());
  } finally {
    db.close();
  }
}
