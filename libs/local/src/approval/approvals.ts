import { Inject, Injectable } from '@nestjs/common';
import { errorMessage, type FunctionResolveResponse, HarnessError, type JsonValue } from '#libs/contracts';
import { BUS, type Bus } from '#libs/iii';
import type { PendingApproval } from './events.js';
import { ApprovalInbox, DENIED } from './inbox.js';
import { Permission } from './permission.js';

/** A person's decision about a pending call. */
export interface Decision {
  session_id: string;
  function_call_id: string;
  decision: 'allow' | 'deny';
  reason?: string | null;
  grant_scope?: 'once' | 'session' | 'always' | null;
}

/** Longest reason that a model is told, in characters. */
const REASON_CHARS = 2_000;

/** Carries out decisions about pending calls, from stored state alone. */
@Injectable()
export class Approvals {
  constructor(
    @Inject(BUS) private readonly bus: Bus,
    @Inject(ApprovalInbox) private readonly inbox: ApprovalInbox,
    @Inject(Permission) private readonly permission: Permission,
  ) {}

  /**
   * Settles a call, once. `resolved` is false when no such call waits; one whose hold is not on disk yet can be resolved a
   * moment later. Throws `approval/harness_unavailable` when the harness cannot be reached; then the call still waits.
   */
  async resolve(decision: Decision): Promise<{ resolved: boolean; turn_resumed?: boolean }> {
    const pending = this.inbox.find(decision.session_id, decision.function_call_id);
    if (pending === null) return { resolved: false };
    if (decision.decision === 'deny') return await this.settle(pending, refusal(pending.function_id, decision.reason ?? null));
    const answer = await this.settle(pending, { action: 'execute' });
    if (answer.resolved && (decision.grant_scope ?? 'once') !== 'once') await this.approveAlways(pending.session_id, pending.function_id);
    return answer;
  }

  /** Lets every later call of a function pass in a session's tree, and those that wait now. */
  async approveAlways(sessionId: string, functionId: string): Promise<void> {
    const { settings } = this.permission;
    const root = settings.rootOf(sessionId);
    await settings.add(root, 'approved_always', functionId, Date.now());
    for (const pending of this.everyPending()) {
      if (pending.function_id !== functionId || settings.rootOf(pending.session_id) !== root) continue;
      await this.settle(pending, { action: 'execute' });
    }
  }

  private everyPending(): PendingApproval[] {
    const all: PendingApproval[] = [];
    let cursor: string | undefined;
    do {
      const page = this.inbox.list({ limit: 500, ...(cursor === undefined ? {} : { cursor }) });
      all.push(...page.pending);
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    return all;
  }

  private async settle(pending: PendingApproval, how: { [field: string]: JsonValue }): Promise<FunctionResolveResponse> {
    const { session_id, turn_id, function_call_id } = pending;
    try {
      return await this.bus.trigger<FunctionResolveResponse>({
        function_id: 'harness::function::resolve',
        payload: { session_id, turn_id, function_call_id, ...how },
      });
    } catch (error) {
      throw new HarnessError('approval/harness_unavailable', `the decision could not be carried out: ${errorMessage(error)}`, {
        retry: 'retry',
        cause: error,
      });
    }
  }
}

/** What the model is told of a call that a person denied; a call that nobody settled in time reads otherwise. */
function refusal(functionId: string, given: string | null): { [field: string]: JsonValue } {
  const reason = given === null || given.trim() === '' ? null : given.trim().slice(0, REASON_CHARS);
  const message = `${functionId} was not called: a person denied it${reason === null ? '' : `, saying: ${reason}`}`;
  return {
    action: 'deliver',
    is_error: true,
    content: [{ type: 'text', text: `${message}. Do not make the same call again; go on without it, or say what it is needed for.` }],
    details: { error: DENIED, function_id: functionId, decision: 'deny', message, ...(reason === null ? {} : { reason }) },
  };
}
