import type { HookPoint, JsonValue } from '#libs/contracts';

/** A function that is bound to a hook point. */
export interface HookBinding {
  function_id: string;
  priority: number;
  timeout_ms: number;
  on_error: 'fail_open' | 'fail_closed';
  metadata: JsonValue | undefined;
  /** Null: every call. */
  matches: ((functionId: string) => boolean) | null;
}

/** True for points where a failing hook denies by default. */
export const isGuard = (point: HookPoint): boolean => point.startsWith('pre_');
