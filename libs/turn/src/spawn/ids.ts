import { createHash } from 'node:crypto';

const hex32 = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32);

/** Ids of the child of a call: the same call always has the same child, so that a repeat makes no second one. */
export const childIds = (turnId: string, callId: string): { session_id: string; turn_id: string } => ({
  session_id: `s_${hex32(`session ${turnId} ${callId}`)}`,
  turn_id: `t_${hex32(`turn ${turnId} ${callId}`)}`,
});
