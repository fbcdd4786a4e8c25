import type { EmbeddedRuntime, OpenRuntimeOptions } from '#libs/local';
import { folderFault } from '../input/data-dir.js';
import { CliError, EXIT } from './exit.js';

/** Opens the embedded runtime, which is loaded only now; says first when the data folder cannot be one. */
export async function openRuntime(options: OpenRuntimeOptions): Promise<EmbeddedRuntime> {
  const fault = await folderFault(options.dataDir);
  if (fault !== null)
    throw new CliError(
      EXIT.unreachable,
      'cli/data_dir',
      `the data folder ${options.dataDir} cannot be used: ${fault}`,
      'Choose another one with --data-dir or HARNESS_DATA_DIR, or change its permissions.',
    );
  const local = await import('#libs/local');
  return await local.openRuntime(options);
}
