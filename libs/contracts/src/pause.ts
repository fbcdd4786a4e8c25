/** Waits `ms`, or until `signal` is aborted; never rejects. With `background` it does not keep the process alive. */
export function pause(ms: number, signal: AbortSignal, background = false): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    if (background) timer.unref();
    signal.addEventListener('abort', done);
  });
}
