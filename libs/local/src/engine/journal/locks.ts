/** Lets one piece of work at a time have a name. */
export class Locks {
  private readonly tails = new Map<string, Promise<void>>();

  /** Runs `work` while it alone has all of `names`; they are taken in one order, so that two never wait for each other. */
  async hold<T>(names: Iterable<string>, work: () => Promise<T>): Promise<T> {
    const releases: (() => void)[] = [];
    try {
      for (const name of [...new Set(names)].sort()) releases.push(await this.take(name));
      return await work();
    } finally {
      for (const release of releases) release();
    }
  }

  private async take(name: string): Promise<() => void> {
    const before = this.tails.get(name) ?? Promise.resolve();
    let free: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      free = resolve;
    });
    const tail = before.then(() => held);
    this.tails.set(name, tail);
    await before;
    return () => {
      free();
      if (this.tails.get(name) === tail) this.tails.delete(name);
    };
  }
}
