/** `warn`: works, with something to know. `fail`: does not. */
export type CheckStatus = 'ok' | 'warn' | 'fail';

/** What a check of the doctor found, and what to do about it. */
export interface Check {
  name: string;
  status: CheckStatus;
  detail: string;
  advice?: string;
}

export const ok = (name: string, detail: string): Check => ({ name, status: 'ok', detail });
export const warn = (name: string, detail: string, advice: string): Check => ({ name, status: 'warn', detail, advice });
export const fail = (name: string, detail: string, advice: string): Check => ({ name, status: 'fail', detail, advice });
