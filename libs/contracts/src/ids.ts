import { createHash, randomUUID } from 'node:crypto';

const hex32 = (): string => randomUUID().replaceAll('-', '');

/** Makes a new session id: `s_` + 32 hex digits. */
export const newSessionId = (): string => `s_${hex32()}`;
/** Makes a new turn id: `t_` + 32 hex digits. */
export const newTurnId = (): string => `t_${hex32()}`;
/** Makes a new function call id: `fc_` + 32 hex digits. */
export const newCallId = (): string => `fc_${hex32()}`;
/** Makes a new id for an entry that nobody named: `e_` + 32 hex digits. */
export const newEntryId = (): string => `e_${hex32()}`;

const UNSAFE = /[^A-Za-z0-9_.-]/g;

/** Replaces what an entry id may not hold by `_`, so that ids given by a provider or a caller can be part of one. */
export const sanitizeIdPart = (part: string): string => part.replace(UNSAFE, '_');

/** A part of an id that differs for different keys, also where sanitizing makes them alike. */
function distinctIdPart(key: string): string {
  const safe = sanitizeIdPart(key).slice(0, 100);
  return safe === key ? safe : `${safe}_${createHash('sha256').update(key).digest('hex').slice(0, 16)}`;
}

/**
 * The deterministic entry ids of the loop. A redelivered step writes the same ids, so a repeat is a no-op.
 */
export const entryIds = {
  /** The one assistant entry of a generate step (invariant I3). */
  assistant: (turnId: string, step: number): string => `e_${turnId}_${step}_assistant`,
  /** The result entry of a call; it is also the proof that the call is settled. */
  result: (turnId: string, callId: string): string => `e_${turnId}_${sanitizeIdPart(callId)}`,
  /** The user entry of a send with an idempotency key. */
  idempotent: (key: string): string => `e_idem_${distinctIdPart(key)}`,
  /** The compaction entry that a step wrote. */
  compaction: (turnId: string, step: number): string => `e_${turnId}_${step}_compaction`,
  /** The n-th validation nudge of a turn. */
  nudge: (turnId: string, n: number): string => `e_${turnId}_nudge_${n}`,
  /** The entry that says why a turn failed. */
  error: (turnId: string): string => `e_${turnId}_error`,
  /** The notice that a turn was stopped, or that it reached its limit. */
  notice: (turnId: string, reason: 'stopped' | 'max_turns'): string => `e_${turnId}_${reason}`,
} as const;

/** The idempotency key of a generation at the router: one per turn and step. */
export const requestId = (turnId: string, step: number): string => `${turnId}:${step}`;
