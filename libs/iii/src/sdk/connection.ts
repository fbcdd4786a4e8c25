import { HarnessError } from '#libs/contracts';

/** How long other workers may take to come back after an engine has, in ms. */
const FRESH_MS = 10_000;

/** How the connection of an SDK client does. */
export interface SdkConnection {
  readonly isUp: boolean;
  /** True for a while after it has come back: other workers come back, too, and what they register may not be there yet. */
  readonly isFresh: boolean;
  /** Calls back when the connection is lost, and again when it is back and everything is registered anew. Returns what ends that. */
  onLost(listener: () => void): () => void;
  onBack(listener: () => void): () => void;
}

/** The part of the SDK's client that its types do not show. */
interface StatefulClient {
  connectionState?: unknown;
  setConnectionState?: (state: string) => void;
}

/**
 * Watches the connection of an SDK client. The SDK offers no event for it, so this listens where it notes its state. Throws
 * `harness/internal` when a version of the SDK does so in another way.
 */
export function watchConnection(client: object): SdkConnection {
  const stateful = client as StatefulClient;
  const note = stateful.setConnectionState?.bind(client);
  if (note === undefined || typeof stateful.connectionState !== 'string')
    throw new HarnessError('harness/internal', 'this version of iii-sdk does not tell the state of its connection');
  const lost = new Set<() => void>();
  const back = new Set<() => void>();
  let wasUp = false;
  let backAt = Number.NEGATIVE_INFINITY;
  stateful.setConnectionState = (state) => {
    const before = stateful.connectionState === 'connected';
    note(state);
    if (before && state !== 'connected') for (const listener of [...lost]) listener();
    if (!before && state === 'connected') {
      const isReturn = wasUp;
      wasUp = true;
      if (isReturn) backAt = Date.now();
      // The SDK registers everything anew right after it has noted that it is connected.
      if (isReturn)
        setImmediate(() => {
          for (const listener of [...back]) listener();
        });
    }
  };
  const add = (listeners: Set<() => void>, listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return {
    get isUp() {
      return stateful.connectionState === 'connected';
    },
    get isFresh() {
      return Date.now() - backAt < FRESH_MS;
    },
    onLost: (listener) => add(lost, listener),
    onBack: (listener) => add(back, listener),
  };
}
