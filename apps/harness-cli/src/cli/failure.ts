import { errorCode, errorMessage } from '#libs/contracts';
import { redact } from '../render/redact.js';
import { sanitize } from '../render/sanitize.js';
import { CliError, EXIT, type ExitCode } from './exit.js';

/** How an error is told: its exit code, a stable code, what is wrong and what to do about it. */
export interface Failure {
  exitCode: ExitCode;
  code: string;
  message: string;
  hint?: string;
}

interface Known {
  exitCode: ExitCode;
  hint?: string;
}

const DISK_FULL: Known = {
  exitCode: EXIT.unreachable,
  hint: 'Nothing that was answered is lost. Free some space and try again; `harness-cli doctor` shows how much there is.',
};

const CORRUPT: Known = {
  exitCode: EXIT.unreachable,
  hint: 'The file was left as it is. Put a backup in its place, or move it away and start with an empty one; `sqlite3 FILE .recover` may save what is in it.',
};

const KNOWN: { readonly [code: string]: Known } = {
  'harness/invalid_request': { exitCode: EXIT.usage },
  'harness/invalid_message_role': { exitCode: EXIT.usage },
  'harness/idempotency_conflict': { exitCode: EXIT.usage },
  'harness/storage': DISK_FULL,
  'gateway/invalid_setting': { exitCode: EXIT.usage },
  'harness/invalid_setting': { exitCode: EXIT.usage },
  'queue/redis_unreachable': {
    exitCode: EXIT.unreachable,
    hint: 'Start it (redis-server), or unset REDIS_URL: the embedded queue needs no server.',
  },
  'queue/redis_eviction': {
    exitCode: EXIT.unreachable,
    hint: '`redis-cli config set maxmemory-policy noeviction` does it until its next start.',
  },
  'harness/duplicate': { exitCode: EXIT.unreachable },
  'harness/no_queue': { exitCode: EXIT.unreachable },
  'service/invalid_setting': { exitCode: EXIT.usage },
  'harness/unreachable': {
    exitCode: EXIT.unreachable,
    hint: 'Is it running, and is this its address? `harness-cli serve` prints the address of its gateway; HARNESS_GATEWAY_TOKEN is its token.',
  },
  function_not_found: {
    exitCode: EXIT.unreachable,
    hint: 'No worker that is connected there has it. `harness-cli serve --url ADDRESS` is a harness for an engine; HARNESS_SIBLINGS=all adds what it lacks.',
  },
  'harness/store_newer': {
    exitCode: EXIT.unreachable,
    hint: 'Update harness, or choose another folder with --data-dir. The database was not touched.',
  },
  'harness/store_corrupt': CORRUPT,
  'harness/store_unwritable': {
    exitCode: EXIT.unreachable,
    hint: 'Change the permissions of the folder, or choose another one with --data-dir or HARNESS_DATA_DIR.',
  },
  'configuration/invalid': {
    exitCode: EXIT.usage,
    hint: "Correct the file under the data folder's config/ and try again; `harness-cli doctor` checks it.",
  },
  'session/not_found': { exitCode: EXIT.usage, hint: 'List what is there with `harness-cli sessions`.' },
  'session/invalid_request': { exitCode: EXIT.usage },
  'session/storage': DISK_FULL,
  'router/invalid_request': { exitCode: EXIT.usage },
  'router/unknown_provider': { exitCode: EXIT.usage, hint: 'See what there is with `harness-cli models`.' },
  'router/no_provider_for_model': {
    exitCode: EXIT.usage,
    hint: 'Name the provider with --provider; see what there is with `harness-cli models`.',
  },
  'router/ambiguous_model': { exitCode: EXIT.usage, hint: 'Name the provider with --provider.' },
  ENOSPC: DISK_FULL,
  SQLITE_FULL: DISK_FULL,
  SQLITE_CORRUPT: CORRUPT,
  SQLITE_NOTADB: CORRUPT,
  EACCES: {
    exitCode: EXIT.unreachable,
    hint: 'Change the permissions, or choose another data folder with --data-dir or HARNESS_DATA_DIR.',
  },
  EROFS: { exitCode: EXIT.unreachable, hint: 'Choose another data folder with --data-dir or HARNESS_DATA_DIR.' },
  ENOTDIR: { exitCode: EXIT.unreachable, hint: 'Choose another data folder with --data-dir or HARNESS_DATA_DIR.' },
};

interface CommanderError {
  exitCode: number;
  code: string;
  message: string;
}
const isCommanderError = (error: unknown): error is CommanderError =>
  error instanceof Error &&
  typeof (error as { code?: unknown }).code === 'string' &&
  (error as unknown as CommanderError).code.startsWith('commander.');

/** What to tell of an error; null when it is none, as help that was asked for. */
export function failureOf(error: unknown, env: NodeJS.ProcessEnv): Failure | null {
  if (isCommanderError(error)) {
    if (error.exitCode === 0) return null;
    const message = error.code === 'commander.help' ? 'there is no command' : error.message.replace(/^error: /, '');
    return { exitCode: EXIT.usage, code: 'cli/usage', message: sanitize(message) };
  }
  if (error instanceof CliError)
    return { exitCode: error.exitCode, code: error.code, message: sanitize(redact(error.message, env)), hint: error.hint };
  const code = errorCode(error) ?? 'cli/internal';
  const known = KNOWN[code] ?? { exitCode: EXIT.unreachable };
  const text = errorMessage(error).replace(`${code}: `, '');
  return { exitCode: known.exitCode, code, message: sanitize(redact(text, env)), hint: known.hint };
}
