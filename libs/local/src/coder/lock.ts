/** Lets one task at a time through for each key, in order of arrival. */
export class KeyedLock {
  private readonly tails = new Map<string, Promise<unknown>>();

  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const before = this.tails.get(key) ?? Promise.resolve();
    const mine = before.then(task, task);
    const settled = mine.catch(() => undefined);
    this.tails.set(key, settled);
    try {
      return await mine;
    } finally {
      if (this.tails.get(key) === settled) this.tails.delete(key);
    }
  }
}
