import type { AssistantMessage } from '#libs/contracts';
import { type PlannedCall, planCalls } from '../machine/calls.js';
import { valueFault } from '../output/contract.js';
import type { DispatchPolicy } from '../policy/policy.js';
import type { CallCheckpoint, TurnRecord } from '../record/record.js';
import type { HookPoints } from './hook-points.js';

/** The calls of a step's message, with what the policy, the output contract and hooks have to say of each. */
export class StepPlan {
  private calls: readonly PlannedCall[] = [];

  constructor(
    private readonly record: Pick<TurnRecord, 'session_id' | 'options'>,
    private readonly policy: DispatchPolicy,
    private readonly hooks: HookPoints,
  ) {}

  /** Plans the calls of a message. */
  make(message: AssistantMessage): void {
    const { output } = this.record.options;
    this.calls = planCalls(message, {
      refusalOf: (id) => this.policy.refusal(id),
      isHooked: (id) => this.isHooked(id),
      ...(output.type === 'json' ? { submissionFault: (value) => valueFault(output, value) } : {}),
    });
  }

  /** The plan, with what hooks have to say now of the call that comes next: they may have come since it was made. */
  now(checkpoints: readonly CallCheckpoint[]): readonly PlannedCall[] {
    const isReady = (id: string): boolean => checkpoints.some((call) => call.id === id && call.state === 'ready');
    const next = this.calls.find((call) => call.refusal === null && call.submission === null && isReady(call.id));
    if (next === undefined || next.hooked || !this.isHooked(next.function_id)) return this.calls;
    this.calls = this.calls.map((call) => (call === next ? { ...call, hooked: true } : call));
    return this.calls;
  }

  private isHooked(functionId: string): boolean {
    return this.hooks.isHooked(this.record.session_id, functionId);
  }
}
