/** What a caller may do about an error: nothing, or try again (after `retryAfterMs`). */
export type RetryClass = 'terminal' | 'retry';

/**
 * The error of every function of ours. Its message starts with its code (`harness/invalid_request: ...`), since the
 * bus carries only the message of a worker's error.
 */
export class HarnessError extends Error {
  override readonly name = 'HarnessError';
  constructor(
    /** `<worker>/<snake_case>`, stable. */
    readonly code: string,
    /** What is wrong, for a person, without the code. */
    readonly detail: string,
    readonly options: { retry?: RetryClass; cause?: unknown } = {},
  ) {
    super(`${code}: ${detail}`, options.cause === undefined ? undefined : { cause: options.cause });
  }
  get retryable(): boolean {
    return this.options.retry === 'retry';
  }
}

const CODE = /(?<![\w/.-])([a-z][a-z0-9_-]*\/[a-z][a-z0-9_]*): /;
/** The code in an error's message, e.g. `session/not_found`, wherever the bus put it; else the error's own `code`. */
export function errorCode(error: unknown): string | undefined {
  if (error instanceof HarnessError) return error.code;
  const found = CODE.exec(errorMessage(error))?.[1];
  if (found !== undefined) return found;
  const code = typeof error === 'object' && error !== null ? (error as { code?: unknown }).code : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** The code in a message and what follows it; null when there is none. */
export function splitCode(message: string): { code: string; detail: string } | null {
  const found = CODE.exec(message);
  return found?.[1] === undefined ? null : { code: found[1], detail: message.slice(found.index + found[0].length) };
}

/** A readable message of anything that can be thrown. */
export function errorMessage(error: unknown): string {
  if (error instanceof Error) return error.message || error.name;
  if (typeof error === 'string') return error;
  if (typeof error === 'object' && error !== null) {
    const message = (error as { message?: unknown }).message;
    if (typeof message === 'string') return message;
    try {
      return JSON.stringify(error) ?? 'unknown error';
    } catch {
      return 'an error that cannot be shown as text';
    }
  }
  return String(error);
}

/** Codes that the bus itself gives. */
export const BUS_CODES = {
  functionNotFound: 'function_not_found',
  timeout: 'timeout',
  stopped: 'invocation_stopped',
  /** The connection to the engine was lost while a call was under way. */
  connectionLost: 'connection_lost',
  forbidden: 'FORBIDDEN',
} as const;

/** Codes of the harness's own functions. */
export const HARNESS_CODES = {
  invalidRequest: 'harness/invalid_request',
  invalidMessageRole: 'harness/invalid_message_role',
  spawnDepthExceeded: 'harness/spawn_depth_exceeded',
  spawnFanoutExceeded: 'harness/spawn_fanout_exceeded',
  dependency: 'harness/dependency',
  contextOverflow: 'harness/context_overflow',
  state: 'harness/state',
  storage: 'harness/storage',
  internal: 'harness/internal',
  idempotencyConflict: 'harness/idempotency_conflict',
} as const;
