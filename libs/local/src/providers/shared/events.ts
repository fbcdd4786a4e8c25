/** How long the rest of an answer may take once its terminal event has come, in ms. */
const REST_MS = 2_000;
const LATE = Symbol('late');

/**
 * Feeds events to `handle` until it returns something else than undefined, which is the result; undefined when the events
 * end first. The rest of the answer is read to its end in the background, so that the connection can be used again;
 * `cancel` ends the request when that takes too long.
 */
export async function readUntil<E, R>(
  events: AsyncIterable<E>,
  handle: (event: E) => Promise<R | undefined> | R | undefined,
  cancel: () => void,
): Promise<R | undefined> {
  const iterator = events[Symbol.asyncIterator]();
  for (;;) {
    const step = await iterator.next();
    if (step.done === true) return undefined;
    let result: R | undefined;
    try {
      const handled = handle(step.value);
      result = handled instanceof Promise ? await handled : handled;
    } catch (error) {
      cancel();
      throw error;
    }
    if (result === undefined) continue;
    void drain(iterator, cancel);
    return result;
  }
}

/** What is left of an answer after its last word, for at most a moment for each event. */
export async function* rest<E>(iterator: AsyncIterator<E>, cancel: () => void): AsyncGenerator<E, void, void> {
  for (;;) {
    const step = await within(iterator.next());
    if (step === LATE) return cancel();
    if (step.done === true) return;
    yield step.value;
  }
}

async function drain(iterator: AsyncIterator<unknown>, cancel: () => void): Promise<void> {
  try {
    for await (const _ of rest(iterator, cancel)) void _;
  } catch {
    // the answer is complete: what breaks after its last word changes nothing
  }
}

async function within<T>(promise: Promise<T>): Promise<T | typeof LATE> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<typeof LATE>((resolve) => {
    timer = setTimeout(() => resolve(LATE), REST_MS);
    timer.unref();
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
