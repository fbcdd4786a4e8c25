import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import type { JsonObject, JsonValue } from '#libs/contracts';
import { BUS, type Bus, TriggerBindings } from '#libs/iii';
import { matchesMetadata } from '../sessions/metadata.js';
import { EventDelivery } from '../turns/delivery.js';
import { approvalTriggers } from './schemas.js';

/** A call that waits for a person's decision. Times are ms since the epoch. */
export interface PendingApproval {
  session_id: string;
  turn_id: string;
  function_call_id: string;
  function_id: string;
  /** The arguments, cut short and without secrets. */
  arguments_excerpt: JsonValue;
  /** 0 for a call of the root session, more for one of a sub-agent. */
  depth: number;
  pending_at: number;
  expires_at: number;
  session_title?: string;
  session_description?: string;
  session_metadata?: JsonObject;
}

/** How a pending call left the inbox. `aborted`: by a stop, or because somebody answered the call in another way. */
export type ApprovalOutcome = 'allow' | 'deny' | 'timeout' | 'aborted';

export interface ResolvedApproval {
  session_id: string;
  turn_id: string;
  function_call_id: string;
  function_id: string;
  outcome: ApprovalOutcome;
  reason?: string;
  session_metadata?: JsonObject;
  resolved_at: number;
}

/** The two events of the inbox; each is stored by the commit that it tells of. */
export type ApprovalEvent =
  | { type: 'approval::pending-created'; payload: PendingApproval & { status: 'pending' } }
  | { type: 'approval::pending-resolved'; payload: ResolvedApproval };

const isApprovalEvent = (event: { type: string }): event is ApprovalEvent => Object.hasOwn(approvalTriggers, event.type);

interface ApprovalBinding {
  session_id?: string | null;
  metadata?: JsonObject | null;
}

/** The trigger types of the inbox, and the delivery to what is bound to them. */
@Injectable()
export class ApprovalEvents implements OnModuleInit {
  private readonly bindings = new Map<string, TriggerBindings<ApprovalBinding>>(
    Object.entries(approvalTriggers).map(([id, definition]) => [id, new TriggerBindings<ApprovalBinding>({ id, ...definition })]),
  );

  constructor(
    @Inject(BUS) private readonly bus: Bus,
    @Inject(EventDelivery) private readonly delivery: EventDelivery,
  ) {}

  onModuleInit(): void {
    for (const bindings of this.bindings.values()) bindings.publish(this.bus);
    this.delivery.addListeners({
      wants: (type) => this.bindings.get(type)?.empty === false,
      deliver: async (event) => {
        if (isApprovalEvent(event)) await this.tell(event);
      },
    });
  }

  /** Calls the functions that are bound to the event; rejects when one of them failed, after all were called. */
  private async tell({ type, payload }: ApprovalEvent): Promise<void> {
    await this.bindings
      .get(type)
      ?.call(
        this.bus,
        payload,
        (config) =>
          (config.session_id == null || config.session_id === payload.session_id) &&
          matchesMetadata(config.metadata, payload.session_metadata),
      );
  }
}
