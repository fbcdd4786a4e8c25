import type { HookRegistry } from '#libs/hooks';
import type { Bus } from '#libs/iii';
import type { Clock, Feed, Journal, SettingsSource, SpanSink, Transcript } from '../ports/index.js';

/** What the loop works with. */
export interface LoopPorts {
  bus: Bus;
  journal: Journal;
  transcript: Transcript;
  settings: SettingsSource;
  feed: Feed;
  clock: Clock;
  hooks: HookRegistry;
  spans: SpanSink;
}
