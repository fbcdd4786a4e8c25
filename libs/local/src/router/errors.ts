import { type AssistantMessage, type ErrorKind, errorCode, errorMessage, HarnessError } from '#libs/contracts';
import { BusError } from '#libs/iii';

/** Codes of the router's errors. */
export const ROUTER_CODES = {
  invalidRequest: 'router/invalid_request',
  noProviderForModel: 'router/no_provider_for_model',
  ambiguousModel: 'router/ambiguous_model',
  unknownProvider: 'router/unknown_provider',
  providerUnavailable: 'router/provider_unavailable',
  notConfigured: 'router/not_configured',
  structuredOutputUnsupported: 'router/structured_output_unsupported',
  requestInProgress: 'router/request_in_progress',
  streamSetupFailed: 'router/stream_setup_failed',
  streamIdleTimeout: 'router/stream_idle_timeout',
  streamTimeout: 'router/stream_timeout',
  streamIncomplete: 'router/stream_incomplete',
  providerAuthExpired: 'router/provider_auth_expired',
  providerRateLimited: 'router/provider_rate_limited',
  contextOverflow: 'router/context_overflow',
  providerTransient: 'router/provider_transient',
  providerRejected: 'router/provider_rejected',
} as const;

/** Why a chat, or one try of it, failed. */
export interface Failure {
  code: string;
  /** For a person, without the code. */
  message: string;
  kind: ErrorKind;
  /** How long the provider asks to wait before the next try, in ms. */
  retryAfterMs?: number;
  /** The provider's own terminal message, when there is one. */
  terminal?: AssistantMessage;
}

/** True when the same request may succeed later. */
export const isRetryable = (kind: ErrorKind): boolean => kind === 'rate_limited' || kind === 'transient';

/** The router's code for a failure that a provider reports. */
export function codeOfKind(kind: ErrorKind): string {
  switch (kind) {
    case 'auth_expired':
      return ROUTER_CODES.providerAuthExpired;
    case 'rate_limited':
      return ROUTER_CODES.providerRateLimited;
    case 'context_overflow':
      return ROUTER_CODES.contextOverflow;
    case 'transient':
      return ROUTER_CODES.providerTransient;
    case 'permanent':
      return ROUTER_CODES.providerRejected;
    default: {
      const never: never = kind;
      throw new Error(`no such error kind: ${String(never)}`);
    }
  }
}

const KINDS: readonly string[] = ['auth_expired', 'rate_limited', 'context_overflow', 'transient', 'permanent'] satisfies ErrorKind[];

/** The kind in a terminal message; one that is absent or unknown counts as permanent. */
export const kindOf = (value: unknown): ErrorKind =>
  typeof value === 'string' && KINDS.includes(value) ? (value as ErrorKind) : 'permanent';

/** The failure that an error thrown by the router itself stands for. */
export function failureOf(error: unknown): Failure {
  const code = error instanceof HarnessError ? error.code : ROUTER_CODES.streamSetupFailed;
  const message = error instanceof HarnessError ? error.detail : errorMessage(error);
  return { code, message, kind: error instanceof HarnessError && error.retryable ? 'transient' : 'permanent' };
}

/** The failure of a call of `provider::<id>::stream` that was rejected. */
export function failureOfCall(provider: string, error: unknown): Failure {
  const code = error instanceof BusError ? error.code : (errorCode(error) ?? '');
  switch (code) {
    case 'function_not_found':
      return {
        code: ROUTER_CODES.providerUnavailable,
        message: `provider ${provider} is registered, but provider::${provider}::stream is not on the bus: its worker is not running`,
        kind: 'transient',
      };
    case 'invocation_stopped':
      return { code: ROUTER_CODES.providerUnavailable, message: `the worker of provider ${provider} went away`, kind: 'transient' };
    case 'timeout':
    case 'TIMEOUT':
      return { code: ROUTER_CODES.streamTimeout, message: `provider ${provider} did not end its stream in time`, kind: 'transient' };
    default:
      return { code: ROUTER_CODES.streamSetupFailed, message: `provider ${provider} failed: ${errorMessage(error)}`, kind: 'permanent' };
  }
}

const literally = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
/** So many characters of a secret are enough to recognise it, also where a vendor shows only its beginning. */
const TELLING = 12;

/** Takes a secret out of a text, also where only its beginning is shown. */
export function redact(text: string, secret: string | null): string {
  if (secret === null || secret.length < 8) return text;
  return text.replace(new RegExp(`${literally(secret.slice(0, TELLING))}[\\w.*…-]*`, 'g'), '[redacted]');
}
