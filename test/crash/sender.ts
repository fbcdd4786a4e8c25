import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CustomMessage, SendResponse, StatusReport, StopResponse } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import type { TurnRecord } from '#libs/turn';
import { type JobLine, kindOf, type PlannedSend, type WorkerLine } from './protocol.js';

const CONTRACT = { type: 'object', properties: { answer: { type: 'integer' } }, required: ['answer'] };

/** How often somebody looks whether a turn is over that another process runs, in ms. */
const LOOK_MS = 200;

/** What a client of the loop does: it sends, stops, releases and waits, and tells the parent process of it. */
export class Sender {
  private readonly waiting = new Map<string, (() => void)[]>();

  constructor(private readonly bus: Bus) {}

  /** Tells the parent process something; a line is there even when this process dies right after. */
  tell(line: WorkerLine): void {
    writeSync(1, `${JSON.stringify(line)}\n`);
  }

  /** Sends one message and, for a `chase`, more of them at the same time. */
  async send(send: PlannedSend): Promise<void> {
    const { session_id, text, key } = send;
    if (kindOf(text) !== 'chase') return await this.one(send);
    const behind = [1, 2, 3, 4].map((n) => ({
      session_id,
      text: `text ${session_id} behind ${key} ${n}`,
      key: `${key}-${n}`,
      keyless: true as const,
    }));
    await Promise.all([{ ...send, keyless: true as const }, ...behind].map((each) => this.one(each)));
  }

  async stop(session_id: string): Promise<void> {
    const { stopping } = await this.bus.trigger<StopResponse>({ function_id: 'harness::stop', payload: { session_id } });
    this.tell({ type: 'stop-acked', session_id, stopping });
  }

  /** Puts a job into the named queue of the tests, which is made first. */
  async enqueue(job: JobLine): Promise<void> {
    const config = { type: 'fifo', message_group_field: 'group', concurrency: 3, backoff_ms: 20 };
    await this.bus.trigger({ function_id: 'queue::define', payload: { queue: 'jobs', config } });
    await this.bus.trigger({ function_id: 'probe::job', payload: { ...job }, action: { type: 'enqueue', queue: 'jobs' } });
    this.tell({ type: 'enqueued', job });
  }

  /** Lets the calls of a turn go on that the hook holds, as a person would who says yes; those whose time is over are swept. */
  async release({ session_id, turn_id, calls }: TurnRecord): Promise<void> {
    for (const call of calls) {
      if (call.state !== 'pending' || call.held_by === undefined) continue;
      if (call.held_by === 'gate::lapse') await this.bus.trigger({ function_id: 'harness::sweep-pending', payload: {} });
      else
        await this.bus.trigger({
          function_id: 'harness::function::resolve',
          payload: { session_id, turn_id, function_call_id: call.id, action: 'execute' },
        });
    }
  }

  /** To be told of each turn that is over in this process. */
  ended(sessionId: string): void {
    for (const resolve of this.waiting.get(sessionId) ?? []) resolve();
    this.waiting.delete(sessionId);
  }

  /** Waits until no turn of the session is live. */
  async over(sessionId: string): Promise<void> {
    for (;;) {
      const told = new Promise<void>((resolve) => this.waiting.set(sessionId, [...(this.waiting.get(sessionId) ?? []), resolve]));
      const report = await this.bus.trigger<StatusReport | null>({ function_id: 'harness::status', payload: { session_id: sessionId } });
      if (report === null || ['completed', 'cancelled', 'failed'].includes(report.status)) return;
      await Promise.race([told, sleep(LOOK_MS)]);
    }
  }

  private async one(send: PlannedSend): Promise<void> {
    const { session_id, text, key, contract, keyless } = send;
    const kind = kindOf(text);
    const forNobody = kind === 'note' || kind === 'chase';
    const note: CustomMessage = { role: 'custom', custom_type: 'note', content: [{ type: 'text', text }], timestamp: 1 };
    this.tell({ type: 'sending', send });
    const answer = await this.bus.trigger<SendResponse>({
      function_id: 'harness::send',
      payload: {
        session_id,
        message: forNobody ? note : text,
        model: 'scripted-1',
        provider: 'scripted',
        idempotency_key: keyless === true ? null : key,
        options: {
          functions: { allow: ['probe::*', 'harness::spawn'], deny: ['probe::secret'] },
          metadata: { kind },
          ...(contract === true ? { output: { type: 'json', schema: CONTRACT } } : {}),
        },
      },
    });
    this.tell({ type: 'acked', key, turn_id: answer.turn_id, merged: answer.merged === true });
  }
}
