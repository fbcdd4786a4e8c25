import { errorCode, errorMessage, HarnessError } from '#libs/contracts';
import type { SdkBus } from '#libs/iii';
import { becomeOurs } from './identity.js';
import type { Log } from './reach.js';

/**
 * Whether this worker is still the harness of its engine. Whenever the connection was lost another worker may have taken its place; until it is clear
 * that none has, nothing may be committed.
 */
export class Standing {
  /** Rejects with `harness/duplicate` once another worker has taken the place of this one. */
  readonly superseded: Promise<never>;
  private proof: Promise<void> = Promise.resolve();
  private decide: { yes: () => void; no: (error: unknown) => void } | null = null;
  private losses = 0;
  private readonly closed = new AbortController();
  private readonly leave: (() => void)[];

  constructor(
    private readonly bus: SdkBus,
    private readonly log: Log,
  ) {
    let supersede: (error: unknown) => void = () => undefined;
    this.superseded = new Promise<never>((_, reject) => {
      supersede = reject;
    });
    this.superseded.catch(() => undefined); // whoever waits for it is told
    this.leave = [
      bus.connection.onLost(() => this.doubt()),
      bus.connection.onBack(() => {
        this.prove().catch(supersede);
      }),
    ];
  }

  /** Resolves at once, or when the doubt is over. Throws `harness/duplicate` when another worker has come, `harness/storage` when this one ends before. */
  proven(): Promise<void> {
    return this.proof;
  }

  close(): void {
    for (const leave of this.leave) leave();
    this.closed.abort();
    this.decide?.no(new HarnessError('harness/storage', 'the worker stops before the engine was back'));
  }

  private doubt(): void {
    this.losses += 1;
    if (this.decide !== null) return;
    this.proof = new Promise((yes, no) => {
      this.decide = { yes, no };
    });
    this.proof.catch(() => undefined); // whoever commits is told
  }

  private async prove(): Promise<void> {
    const { losses } = this;
    try {
      await becomeOurs(this.bus, { log: this.log, signal: this.closed.signal });
    } catch (error) {
      if (errorCode(error) === 'harness/stopped') return;
      this.log('error', 'this worker ends: it is not the harness of its engine any more', { error: errorMessage(error) });
      this.decide?.no(error);
      throw error;
    }
    if (losses !== this.losses) return; // lost once more: the next return proves it
    this.decide?.yes();
    this.decide = null;
  }
}
