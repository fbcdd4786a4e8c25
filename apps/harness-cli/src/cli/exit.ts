/** Exit codes of the CLI. */
export const EXIT = {
  ok: 0,
  /** The turn, or a check, failed. */
  failed: 1,
  /** Bad usage or input; nothing was written. */
  usage: 2,
  /** Not reachable, or refused. */
  unreachable: 3,
  hungUp: 129,
  cancelled: 130,
  terminated: 143,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** How a process exits that a signal ended. */
export const BY_SIGNAL = { SIGINT: EXIT.cancelled, SIGTERM: EXIT.terminated, SIGHUP: EXIT.hungUp } as const;

/** An error that the CLI itself finds: what is wrong, what to do about it, and how to exit. */
export class CliError extends Error {
  override readonly name = 'CliError';
  constructor(
    readonly exitCode: ExitCode,
    /** `cli/<snake_code>`, stable. */
    readonly code: string,
    message: string,
    /** What to do about it. */
    readonly hint?: string,
  ) {
    super(message);
  }
}

/** Bad usage or input. */
export const usageError = (message: string, hint?: string, code = 'cli/usage'): CliError => new CliError(EXIT.usage, code, message, hint);
