/** Why a fetch gave no response. */
export type WebErrorCode = 'invalid_payload' | 'invalid_url' | 'blocked_host' | 'timeout' | 'too_many_redirects' | 'transport_error';

/** A fetch that gave no response; it becomes `{ok: false, error, message}`. */
export class WebError extends Error {
  override readonly name = 'WebError';
  constructor(
    readonly code: WebErrorCode,
    /** What is wrong, without the code. */
    readonly detail: string,
    options?: { cause?: unknown },
  ) {
    super(`${code}: ${detail}`, options);
  }
}

/** The `WebError` that an error is or was caused by. */
export function findWebError(error: unknown): WebError | null {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if (at instanceof WebError) return at;
    if (at instanceof AggregateError) {
      const inner = at.errors.map(findWebError).find((found) => found !== null);
      if (inner !== undefined) return inner;
    }
  }
  return null;
}

/** The most telling message in a chain of causes. */
export function deepMessage(error: unknown): string {
  let told = error instanceof Error ? error.message : String(error);
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if (at instanceof AggregateError && at.errors[0] instanceof Error) told = at.errors[0].message;
    else if (at.message !== '') told = at.message;
  }
  return told;
}
