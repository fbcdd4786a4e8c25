import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Cli } from '../cli/cli.js';
import { failureOf } from '../cli/failure.js';
import { nearestExisting } from '../input/data-dir.js';
import { plural } from '../render/format.js';
import { readCatalog } from '../turn/choose-model.js';
import { listSessions } from '../turn/session.js';
import { type Check, fail, ok, warn } from './check.js';

/** Would the configuration files be taken as they are now? Their faults keep a process from starting, and a running one on the values before. */
export async function checkConfig(dataDir: string, env: { readonly [name: string]: string | undefined }): Promise<Check> {
  const folder = join(dataDir, 'config');
  const { checkConfiguration } = await import('#libs/local');
  const { files, faults, warnings } = checkConfiguration(folder, env);
  if (faults.length > 0) {
    return fail(
      'config',
      faults.join('; '),
      `Correct the files in ${folder}. Until then no process starts, and one that runs goes on with the values before.`,
    );
  }
  if (warnings.length > 0) return warn('config', warnings.join('; '), `See the files in ${folder}.`);
  return ok('config', files.length === 0 ? 'none, the defaults apply' : files.join(', '));
}

/** Does the data folder open, and does everything in it register? Not tried before its first use. */
export async function checkStore(cli: Cli, dataDir: string): Promise<Check> {
  if ((await nearestExisting(dataDir)) !== dataDir) return ok('store', 'nothing is stored yet');
  const said: string[] = [];
  try {
    const pages = await pagesOf(dataDir);
    if (typeof pages !== 'string') return pages;
    return await cli.withRuntime(
      'reader',
      async (runtime) => {
        const [{ providers, models }, working] = await Promise.all([
          readCatalog(runtime),
          listSessions(runtime, { status: 'working' }, 1000),
        ]);
        const owners = await Promise.all(working.map((meta) => runtime.turnOwner(meta.session_id)));
        const left = owners.filter((owner) => owner === 'gone').length;
        const detail = `opens; ${pages}${plural(providers.length, 'provider')}, ${plural(models.length, 'model')}, ${plural(working.length, 'session')} at work`;
        if (left > 0)
          return warn(
            'store',
            `${detail}; ${plural(left, 'turn')} left behind by a process that is gone`,
            `\`${cli.name} serve\` goes on with them.`,
          );
        if (said.length > 0) return warn('store', `${detail}; ${said[0] ?? ''}`, 'See `--debug` for more.');
        return ok('store', detail);
      },
      {
        isHere: true,
        log: (level, message) => {
          if (level === 'error' || level === 'warn') said.push(message);
        },
      },
    );
  } catch (error) {
    const failure = failureOf(error, cli.io.env);
    return fail('store', failure?.message ?? 'unknown', failure?.hint ?? 'Run it again with --debug.');
  }
}

/** What there is to say of the pages of the database when none is damaged: nothing, mostly. */
async function pagesOf(dataDir: string): Promise<Check | string> {
  const { checkPages, DATABASE_FILE } = await import('#libs/local');
  const path = join(dataDir, DATABASE_FILE);
  if (!existsSync(path)) return '';
  const { read, bytes, faults } = checkPages(dataDir);
  const [first, ...more] = faults;
  if (first !== undefined) {
    const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
    return fail('store', `${path} is damaged: ${first}${rest}`, DAMAGED);
  }
  return read ? '' : `its ${Math.round(bytes / 2 ** 30)} GB were not read for damage; `;
}

const DAMAGED =
  'Stop every process that uses the folder and keep a copy of it. Then restore a backup, or save what can be read with `sqlite3 harness.db .recover`.';
