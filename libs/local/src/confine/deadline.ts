/** A signal that is aborted with another one, or when its time is over. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** True once the time is over. */
  readonly passed: boolean;
  /** To be called when the work has ended. */
  end(): void;
}

/**
 * Limits work to `ms`. Its timer is held by nothing but itself until `end`: `AbortSignal.any` over an `AbortSignal.timeout` that
 * nobody keeps can be collected on Node 20, and then never fires.
 */
export function deadline(signal: AbortSignal, ms: number): Deadline {
  const controller = new AbortController();
  const follow = (): void => controller.abort(signal.reason);
  const state = { signal: controller.signal, passed: false, end: (): void => undefined };
  const timer = setTimeout(() => {
    state.passed = true;
    controller.abort(new DOMException(`it took longer than ${ms} ms`, 'TimeoutError'));
  }, ms);
  state.end = () => {
    clearTimeout(timer);
    signal.removeEventListener('abort', follow);
  };
  if (signal.aborted) follow();
  else signal.addEventListener('abort', follow, { once: true });
  return state;
}
