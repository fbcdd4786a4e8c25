import { BUS_CODES, type ErrorKind, errorCode, errorMessage } from '#libs/contracts';
import type { Outcome } from './draft.js';

/** A failure of a vendor's stream whose kind is known, e.g. a stream that ended before its terminal event. */
export class VendorFailure extends Error {
  override readonly name = 'VendorFailure';
  constructor(
    readonly kind: ErrorKind,
    message: string,
    readonly native?: string,
  ) {
    super(message);
  }
}

/** The parts of an SDK's error that tell what happened; both vendors' SDKs have them. */
interface SdkError {
  status?: unknown;
  headers?: unknown;
  error?: unknown;
  type?: unknown;
  code?: unknown;
  cause?: unknown;
  message?: unknown;
}

const OVERFLOW =
  /context[_ ](length|window|size)|maximum context|prompt is too long|too many (input )?tokens|input is too long|exceeds? (the )?(model's |available )*context|request[_ ]too[_ ]large|reduce the length of the (messages|prompt)/i;
const OUT_OF_CREDIT = /insufficient_quota|billing_hard_limit|credit balance|exceeded your current quota/i;
/** Codes of a bus that could not bring a call to its end; another try may. */
const BUS_TROUBLE = new Set<string>([BUS_CODES.timeout, BUS_CODES.stopped, BUS_CODES.connectionLost]);
const BY_TYPE: { readonly [type: string]: ErrorKind } = {
  authentication_error: 'auth_expired',
  permission_error: 'auth_expired',
  invalid_api_key: 'auth_expired',
  rate_limit_error: 'rate_limited',
  rate_limit_exceeded: 'rate_limited',
  overloaded_error: 'transient',
  api_error: 'transient',
  timeout_error: 'transient',
  server_error: 'transient',
  internal_server_error: 'transient',
  request_too_large: 'context_overflow',
  context_length_exceeded: 'context_overflow',
};

/** What a vendor's error means for a caller: kind, a readable message, and how long to wait. `label` is the vendor's name. */
export function outcomeOf(error: unknown, label: string, connection: string): Outcome {
  if (error instanceof VendorFailure) {
    return { stop_reason: 'error', error_kind: error.kind, error_message: `${label}: ${error.message}`, native_stop_reason: error.native };
  }
  if (error instanceof SyntaxError) {
    return { stop_reason: 'error', error_kind: 'transient', error_message: `${label} sent a stream event that is not JSON` };
  }
  const told = asObject(error);
  const body = told.error;
  const inner = asObject(asObject(body).error ?? body);
  const type = firstText(told.type, inner.type, inner.code, told.code);
  const status = statusOf(told.status ?? inner.code);
  const text = told.status === undefined && body === undefined ? connectionText(error) : vendorText(body, inner, error);
  if (status === undefined && body === undefined && isSdkError(error)) {
    return { stop_reason: 'error', error_kind: 'transient', error_message: `the connection to ${label} failed: ${text} (${connection})` };
  }
  if (status === undefined && body === undefined) {
    return {
      stop_reason: 'error',
      error_kind: isNetwork(error) || BUS_TROUBLE.has(errorCode(error) ?? '') ? 'transient' : 'permanent',
      error_message: `${label}: ${text}`,
    };
  }
  const said = [
    status === undefined ? `${label} ended the stream with an error` : `${label} answered ${status}`,
    type === undefined ? '' : ` (${type})`,
  ].join('');
  const wait = retryAfter(told.headers);
  return {
    stop_reason: 'error',
    error_kind: kindOf(status, [firstText(inner.code), type], text),
    error_message: `${said}: ${text}`.slice(0, 2_000),
    ...(type === undefined ? {} : { native_stop_reason: type }),
    ...(wait === undefined ? {} : { retry_after_ms: wait }),
  };
}

function kindOf(status: number | undefined, types: readonly (string | undefined)[], text: string): ErrorKind {
  if (types.some((type) => type !== undefined && OUT_OF_CREDIT.test(type)) || (status === 429 && OUT_OF_CREDIT.test(text)))
    return 'permanent';
  if (status === 401 || status === 403) return 'auth_expired';
  if (status === 429) return 'rate_limited';
  if (status === 413) return 'context_overflow';
  if (status === 408 || status === 409 || status === 425 || (status !== undefined && status >= 500)) return 'transient';
  for (const type of types) {
    const kind = type === undefined ? undefined : BY_TYPE[type];
    if (kind !== undefined) return kind;
  }
  return OVERFLOW.test(text) || types.some((type) => type !== undefined && OVERFLOW.test(type)) ? 'context_overflow' : 'permanent';
}

function vendorText(body: unknown, inner: { message?: unknown }, error: unknown): string {
  if (typeof inner.message === 'string' && inner.message !== '') return inner.message.slice(0, 1_500);
  if (typeof body === 'string') return body.slice(0, 500);
  const text = errorMessage(error).replace(/^\d{3} /, '');
  return (/^\s*</.test(text) ? text.replace(/<[^>]*>/g, ' ') : text).replace(/\s+/g, ' ').trim().slice(0, 500) || 'no explanation';
}

/** The messages of an error and its causes; a connection's real fault is in the last one. */
function connectionText(error: unknown): string {
  const texts: string[] = [];
  for (let at: unknown = error, depth = 0; at !== undefined && at !== null && depth < 5; at = asObject(at).cause, depth += 1) {
    const code = asObject(at).code;
    const text = errorMessage(at).replace(/\.$/, '');
    const shown = typeof code === 'string' && !text.includes(code) ? `${text} [${code}]` : text;
    if (!texts.includes(shown)) texts.push(shown);
  }
  return texts.join(': ');
}

const isSdkError = (error: unknown): boolean =>
  /^API(Connection|ConnectionTimeout)?Error$/.test(error instanceof Error ? error.constructor.name : '') || isNetwork(error);

/** True for what `fetch` and sockets throw when a connection breaks, also in the middle of a body. */
function isNetwork(error: unknown): boolean {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    const code = asObject(at).code;
    if (typeof code === 'string' && /^(E[A-Z]+|UND_ERR_\w+)$/.test(code)) return true;
    if (/terminated|fetch failed|socket|network/i.test(at.message)) return true;
  }
  return false;
}

/** `Retry-After` in ms: our vendors send `retry-after-ms`, seconds, or a date. */
export function retryAfter(headers: unknown, now = Date.now()): number | undefined {
  const get = (name: string): string | null => {
    const reader = asObject(headers).get;
    const value: unknown = typeof reader === 'function' ? reader.call(headers, name) : undefined;
    return typeof value === 'string' && value.trim() !== '' ? value.trim() : null;
  };
  const ms = Number(get('retry-after-ms') ?? Number.NaN);
  if (Number.isFinite(ms)) return Math.max(0, Math.round(ms));
  const text = get('retry-after');
  if (text === null) return undefined;
  const seconds = Number(text);
  if (Number.isFinite(seconds)) return Math.max(0, Math.round(seconds * 1_000));
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

const statusOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && value >= 400 && value < 600 ? value : undefined;
const firstText = (...values: unknown[]): string | undefined =>
  values.find((value): value is string => typeof value === 'string' && value !== '');
const asObject = (value: unknown): SdkError & { get?: unknown } => (typeof value === 'object' && value !== null ? value : {});
