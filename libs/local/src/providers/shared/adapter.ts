import type { AssistantMessage } from '#libs/contracts';
import type { Bus } from '#libs/iii';

/** A model provider of ours. The runtime registers it once its functions are on the bus. */
export interface ProviderAdapter {
  /** The id in `provider::<id>::stream`. */
  readonly id: string;
  /** Makes the provider and its models known to the router (`router::provider::register`). */
  register(bus: Bus): Promise<void>;
}

/** The terminal frame of a stream that failed; `retry_after_ms` is how long the vendor asks to wait, when it says so. */
export interface ProviderErrorFrame {
  type: 'error';
  error: AssistantMessage;
  retry_after_ms?: number;
}
