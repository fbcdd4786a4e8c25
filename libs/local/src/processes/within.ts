/** Waits for `work`, for at most `ms` or until `hurry` is aborted; never rejects. */
export async function within(work: Promise<unknown>, ms: number, hurry?: AbortSignal): Promise<void> {
  if (hurry?.aborted === true) return;
  let release = (): void => undefined;
  const limit = new Promise<void>((resolve) => {
    release = resolve;
  });
  const timer = setTimeout(release, ms);
  hurry?.addEventListener('abort', release, { once: true });
  await Promise.race([
    work.then(
      () => undefined,
      () => undefined,
    ),
    limit,
  ]);
  clearTimeout(timer);
  hurry?.removeEventListener('abort', release);
}
