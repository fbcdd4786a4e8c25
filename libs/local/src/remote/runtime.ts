import type { JsonObject, StatusReport } from '#libs/contracts';
import type { SdkBus } from '#libs/iii';
import { defaultSettings, type FeedEvent, type HarnessSettings, isTerminal, LiveFeed, type SettingsSource } from '#libs/turn';
import type { EmbeddedRuntime, TurnOwner } from '../runtime/api.js';
import { followOverBus } from './follow.js';

/** A harness that runs somewhere else, reached over a bus alone: a gateway, or an iii engine. */
export class RemoteRuntime implements EmbeddedRuntime {
  readonly feed = new LiveFeed();
  readonly commits = 0;

  private constructor(
    readonly bus: SdkBus,
    /** Where it is, for messages. */
    readonly dataDir: string,
    readonly settings: SettingsSource,
  ) {}

  /** Asks for the harness's settings, which the defaults stand in for where nobody tells them. */
  static async over(bus: SdkBus, url: string): Promise<RemoteRuntime> {
    const entry = await bus
      .trigger<{ value?: JsonObject } | null>({ function_id: 'configuration::get', payload: { id: 'harness' } })
      .catch(() => null);
    const settings: HarnessSettings = { ...defaultSettings, ...(entry?.value as Partial<HarnessSettings> | undefined) };
    return new RemoteRuntime(bus, url, { current: () => settings });
  }

  configurationFaults(): readonly string[] {
    return [];
  }

  /** Whoever runs a turn there is another process. */
  async turnOwner(sessionId: string): Promise<TurnOwner> {
    const report = await this.bus.trigger<StatusReport | null>({ function_id: 'harness::status', payload: { session_id: sessionId } });
    return report === null || isTerminal(report.status) ? 'none' : 'other';
  }

  adopt(): Promise<boolean> {
    return Promise.resolve(false);
  }

  follow(sessionId: string, turnId: string, options: { signal?: AbortSignal; fromStart?: boolean } = {}): AsyncIterable<FeedEvent> {
    return followOverBus(this.bus, sessionId, turnId, options);
  }

  async close(): Promise<void> {
    await this.bus.close();
  }
}
