import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProviderStreamRequest, SendRequest, SendResponse, StatusReport, StopResponse } from '#libs/contracts';
import type { EmbeddedRuntime, RuntimeRole } from '#libs/local';
import type { FeedEvent } from '#libs/turn';
import type { DiskSession } from './disk.js';
import type { ScriptedModel } from './scripted-model.js';
import { TurnRig } from './turn-rig.js';

/** Settings that make streams store often and tries come soon; no commits but those of turns. */
const QUICK = {
  'harness.yaml': 'stream_coalesce_ms: 10\nstep_backoff_ms: 5\ndispatch_timeout_ms: 400\ntrace_turns: 0\n',
  'llm-router.yaml': 'settings:\n  retry_base_ms: 1\n  retry_cap_ms: 5\n',
};

/** One runtime for the many sessions of a test file: each is named by its test, and allows nothing unless told. */
export class Rig {
  private constructor(private readonly rig: TurnRig) {}

  static async open(role: RuntimeRole = 'worker', config: { [file: string]: string } = QUICK): Promise<Rig> {
    const dataDir = mkdtempSync(join(tmpdir(), 'harness-e2e-'));
    mkdirSync(join(dataDir, 'config'));
    for (const [file, text] of Object.entries(config)) writeFileSync(join(dataDir, 'config', file), text);
    return new Rig(await TurnRig.open({ dataDir, role }));
  }

  get dataDir(): string {
    return this.rig.dataDir;
  }
  get model(): ScriptedModel {
    return this.rig.model;
  }
  get runtime(): EmbeddedRuntime {
    return this.rig.runtime;
  }
  get events(): FeedEvent[] {
    return this.rig.events;
  }
  /** What went wrong in the background. */
  get reports(): string[] {
    return this.rig.reports;
  }

  /** Calls any function on the bus. */
  call<T = unknown>(function_id: string, payload: unknown = {}): Promise<T> {
    return this.rig.call<T>(function_id, payload);
  }

  send(session_id: string, message: SendRequest['message'], rest: Partial<SendRequest> = {}): Promise<SendResponse> {
    return this.call('harness::send', { session_id, message, model: 'scripted-1', provider: 'scripted', ...rest });
  }

  stop(session_id: string, turn_id?: string): Promise<StopResponse> {
    return this.rig.stop(session_id, turn_id);
  }

  status(session_id: string): Promise<StatusReport | null> {
    return this.rig.status(session_id);
  }

  /** Sends a message and waits for the end of its turn; gives the session as it is on disk then. */
  async turn(session_id: string, message: SendRequest['message'], rest: Partial<SendRequest> = {}): Promise<DiskSession> {
    const { turn_id } = await this.send(session_id, message, rest);
    await this.over(turn_id);
    return this.disk(session_id);
  }

  /** Waits for the end of a turn. */
  over(turnId: string): ReturnType<TurnRig['end']> {
    return this.rig.end(turnId);
  }

  /** Waits for a turn of the session that no send was answered with; gives its id. */
  nextTurn(sessionId: string, before: string): Promise<string> {
    return this.rig.nextTurn(sessionId, before);
  }

  disk(session_id: string): DiskSession {
    return this.rig.disk(session_id);
  }

  /** The requests that the model got since there were `from` of them. */
  requests(from = 0): ProviderStreamRequest[] {
    return this.model.requests.slice(from);
  }

  /** What is broken: invariants of the stored sessions, requests that no provider would take, reports of the background. */
  faults(): string[] {
    return this.rig.faults();
  }

  close(): Promise<void> {
    return this.rig.close();
  }
}
