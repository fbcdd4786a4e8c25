import { type AgentMessage, errorCode, errorMessage, type JsonObject } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import type { NewEntry, Write } from '#libs/turn';
import { insist } from './insist.js';

type PutEntry = Extract<Write, { kind: 'put-entry' }>;
type OfSession = Extract<Write, { kind: 'ensure-session' | 'append-entry' | 'put-entry' | 'set-status' }>;

/** What a session store is able to do beyond the contract. */
export interface SessionStoreTraits {
  /** `session::update-message` takes `ending`: how a message ended, which a stream tells last. */
  updatesEnding: boolean;
}

/** Writes to sessions by `session::*` of whatever worker keeps them. Every write may be repeated. */
export class BusEntries {
  constructor(
    private readonly bus: Bus,
    private readonly traits: SessionStoreTraits,
    private readonly timeoutMs: () => number,
    private readonly signal: AbortSignal,
    private readonly report: (message: string, context: { [key: string]: unknown }) => void,
  ) {}

  /** Carries a write out, however long the store is away. One that the store refuses for good is reported and let go. */
  async apply(write: OfSession): Promise<void> {
    try {
      await insist(() => this.once(write), this.signal);
    } catch (error) {
      if (errorCode(error) === 'harness/storage') throw error;
      this.report('the session store refused a write', { session_id: write.session_id, write: write.kind, error: errorMessage(error) });
    }
  }

  /** Stores what a stream has brought so far. Throws as `Bus.trigger`: it is not tried again. */
  async sketch({ session_id, entry }: PutEntry): Promise<void> {
    if (!('message' in entry)) return;
    const { message } = entry;
    // Calls come into the transcript only with the commit that knows them. A store that cannot change how a message ended
    // is told of a plain end, since that is what will stand there.
    const content = message.content.filter((block) => block.type !== 'function_call');
    const stop = message.role === 'assistant' && !this.traits.updatesEnding ? { stop_reason: 'end' as const } : {};
    await this.put(session_id, { ...entry, message: { ...message, content, ...stop } as AgentMessage });
  }

  private async once(write: OfSession): Promise<void> {
    switch (write.kind) {
      case 'ensure-session': {
        const { session_id, title, metadata } = write;
        await this.call('ensure', { session_id, ...given({ title, metadata }) });
        return;
      }
      case 'append-entry':
        await this.append(write.session_id, write.entry);
        return;
      case 'put-entry':
        await this.put(write.session_id, write.entry);
        return;
      case 'set-status': {
        const { session_id, status, reason } = write;
        await this.call('set-status', { session_id, status, ...given({ reason }) });
        return;
      }
    }
  }

  private async append(session_id: string, entry: NewEntry): Promise<void> {
    const { entry_id, origin } = entry;
    const what = 'message' in entry ? { message: entry.message } : { custom: entry.custom };
    await this.call('append', { session_id, entry_id, ...what, ...given({ origin }) });
  }

  private async put(session_id: string, entry: NewEntry): Promise<void> {
    if (!('message' in entry)) {
      await this.append(session_id, entry);
      return;
    }
    try {
      await this.update(session_id, entry.entry_id, entry.message, entry.origin);
    } catch (error) {
      if (errorCode(error) !== 'session/entry_not_found') throw error;
      await this.append(session_id, entry);
    }
  }

  private async update(session_id: string, entry_id: string, message: AgentMessage, origin: JsonObject | undefined): Promise<void> {
    const { content } = message;
    const more =
      message.role === 'assistant' ? { usage: message.usage, ...(this.traits.updatesEnding ? { ending: endingOf(message) } : {}) } : {};
    const details = message.role === 'function_result' ? { details: message.details } : {};
    await this.call('update-message', { session_id, entry_id, content, ...given({ ...more, ...details, origin }) });
  }

  private async call(what: string, payload: object): Promise<unknown> {
    return await this.bus.trigger({ function_id: `session::${what}`, payload, timeoutMs: this.timeoutMs() });
  }
}

const endingOf = ({ stop_reason, error_kind, error_message }: Extract<AgentMessage, { role: 'assistant' }>): object =>
  given({ stop_reason, error_kind, error_message });

const given = (fields: { [key: string]: unknown }): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
