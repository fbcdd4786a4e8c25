import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { HarnessError, type HookInput, type HookOutput, type JsonValue } from '#libs/contracts';
import { IiiFunction } from '#libs/iii';
import { Approvals, type Decision } from './approvals.js';
import type { PendingApproval } from './events.js';
import { ApprovalInbox, type PendingQuery } from './inbox.js';
import { Permission, type Verdict } from './permission.js';
import { type ApprovalFunctionId, approvalFunctions } from './schemas.js';
import type { SessionApproval } from './session-settings.js';
import { APPROVAL_DEFAULTS, type ApprovalDefaultsSource, type PermissionMode } from './settings.js';

interface OfSession {
  session_id: string;
}
interface OfFunction extends OfSession {
  function_id: string;
}
interface Settings {
  settings: SessionApproval;
}

const contract = (id: ApprovalFunctionId): MethodDecorator =>
  IiiFunction({
    id,
    ...approvalFunctions[id],
    metadata: { internal: true },
    invalid: (detail) => new HarnessError('approval/invalid_payload', detail),
  });

/** The `approval::*` functions: which calls a person is asked about, which wait, and what was decided. No model reaches them. */
@Controller()
export class ApprovalController {
  constructor(
    @Inject(Approvals) private readonly approvals: Approvals,
    @Inject(ApprovalInbox) private readonly inbox: ApprovalInbox,
    @Inject(Permission) private readonly permission: Permission,
    @Inject(APPROVAL_DEFAULTS) private readonly defaults: ApprovalDefaultsSource,
  ) {}

  /** Writes nothing: the commit that parks the call puts it into the inbox. */
  @contract('approval::gate')
  gate(@Payload() { session_id, call }: HookInput): HookOutput {
    if (call == null) return { decision: 'continue' };
    const said = this.permission.evaluate(session_id, call.function_id);
    switch (said.verdict) {
      case 'allow':
        return { decision: 'continue' };
      case 'deny':
        return { decision: 'deny', reason: said.reason };
      case 'needs_approval':
        return { decision: 'hold' };
      default:
        throw new Error(`unknown verdict ${JSON.stringify(said satisfies never)}`);
    }
  }

  @contract('approval::resolve')
  resolve(@Payload() decision: Decision): Promise<{ resolved: boolean; turn_resumed?: boolean }> {
    return this.approvals.resolve(decision);
  }

  @contract('approval::list-pending')
  listPending(@Payload() query: PendingQuery): { pending: PendingApproval[]; next_cursor?: string } {
    return this.inbox.list(query);
  }

  @contract('approval::get-pending')
  getPending(
    @Payload() { session_id, function_call_id }: OfSession & { function_call_id: string },
  ): { pending: PendingApproval; arguments: JsonValue } | null {
    const pending = this.inbox.find(session_id, function_call_id);
    return pending === null ? null : { pending, arguments: this.inbox.argumentsOf(pending) };
  }

  @contract('approval::evaluate')
  evaluate(@Payload() { session_id, function_id }: OfFunction): Verdict {
    return this.permission.evaluate(session_id, function_id);
  }

  @contract('approval::set-mode')
  async setMode(@Payload() { session_id, mode }: OfSession & { mode: PermissionMode }): Promise<Settings> {
    await this.permission.settings.setMode(session_id, mode, Date.now());
    return this.settings(session_id);
  }

  @contract('approval::get-settings')
  getSettings(@Payload() { session_id }: OfSession): Settings & { source: 'stored' | 'defaults' } {
    const { stored, ...settings } = this.permission.settings.inForce(session_id, this.defaults.current().default_mode);
    return { settings, source: stored ? 'stored' : 'defaults' };
  }

  @contract('approval::clear-settings')
  async clearSettings(@Payload() { session_id }: OfSession): Promise<{ cleared: boolean }> {
    return { cleared: await this.permission.settings.clear(session_id) };
  }

  @contract('approval::add-always-allow')
  async addAlwaysAllow(@Payload() { session_id, function_id }: OfFunction): Promise<Settings> {
    await this.permission.settings.add(session_id, 'always_allow', function_id, Date.now());
    return this.settings(session_id);
  }

  @contract('approval::remove-always-allow')
  async removeAlwaysAllow(@Payload() { session_id, function_id }: OfFunction): Promise<Settings> {
    await this.permission.settings.withdraw(session_id, function_id);
    return this.settings(session_id);
  }

  @contract('approval::approve-always')
  async approveAlways(@Payload() { session_id, function_id }: OfFunction): Promise<Settings> {
    await this.approvals.approveAlways(session_id, function_id);
    return this.settings(session_id);
  }

  private settings(sessionId: string): Settings {
    const { stored: _, ...settings } = this.permission.settings.inForce(sessionId, this.defaults.current().default_mode);
    return { settings };
  }
}
