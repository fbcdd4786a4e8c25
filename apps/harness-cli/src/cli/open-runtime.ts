import type { EmbeddedRuntime, OpenRuntimeOptions } from '#libs/local';
import { folderFault } from '../input/data-dir.js';
import { CliError, EXIT, usageError } from './exit.js';

/** A data folder to open, or the address of a harness that runs somewhere else; for a worker, of the engine that it is for. */
export interface RuntimeRequest extends OpenRuntimeOptions {
  url?: string;
  /** Where a worker of an engine keeps the records of turns. */
  store?: string;
  /** Ends the waiting of a worker for what it depends on. */
  signal?: AbortSignal;
}

/** Opens a runtime, which is loaded only now; says first when the data folder cannot be one. */
export async function openRuntime({ url, ...options }: RuntimeRequest): Promise<EmbeddedRuntime> {
  if (url !== undefined && options.role !== 'worker') {
    const { openRemote } = await import('#libs/local');
    return await openRemote({ url: webSocketUrl(url), token: options.token, log: options.log });
  }
  const fault = await folderFault(options.dataDir);
  if (fault !== null)
    throw new CliError(
      EXIT.unreachable,
      'cli/data_dir',
      `the data folder ${options.dataDir} cannot be used: ${fault}`,
      'Choose another one with --data-dir or HARNESS_DATA_DIR, or change its permissions.',
    );
  const { store } = options;
  if (url === undefined && options.role === 'worker' && store !== undefined && store !== 'sqlite')
    throw usageError(
      `HARNESS_STORE is ${JSON.stringify(store)}: without an engine (--url or III_URL) turns are always in the data folder`,
      'Unset it.',
    );
  const local = await import('#libs/local');
  return url === undefined ? await local.openRuntime(options) : await local.openOnEngine({ ...options, engineUrl: webSocketUrl(url) });
}

function webSocketUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'ws:' && url.protocol !== 'wss:') || url.hash !== '')
    throw usageError(`--url (or III_URL) must be a WebSocket address such as ws://127.0.0.1:49134, not ${JSON.stringify(text)}`);
  return text;
}
