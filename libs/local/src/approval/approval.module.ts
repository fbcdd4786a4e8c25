import { Inject, Module, type OnModuleInit } from '@nestjs/common';
import { hookTriggerType } from '#libs/contracts';
import { BUS, type Bus } from '#libs/iii';
import { LOOP_PORTS, type LoopPorts, TurnModule } from '#libs/turn';
import { ROUTER_SETTINGS, type RouterSettingsSource } from '../router/settings.js';
import { ApprovalController } from './approval.controller.js';
import { Approvals } from './approvals.js';
import { ApprovalEvents } from './events.js';
import { ApprovalInbox, GATE } from './inbox.js';
import { Permission } from './permission.js';

/** After every hook that may change the arguments: what a person sees is what will be called with. */
const LAST = 1_000_000;

/**
 * Registers `approval::*` and its trigger types, and binds the gate as a hook before every call. Needs `BUS`, `DATABASE`,
 * `SqliteWriter`, `EventDelivery`, `ApprovalInbox`, `ROUTER_SETTINGS` and `APPROVAL_DEFAULTS` from global modules.
 */
@Module({
  imports: [TurnModule],
  controllers: [ApprovalController],
  providers: [Approvals, ApprovalEvents, Permission],
})
export class ApprovalModule implements OnModuleInit {
  constructor(
    @Inject(BUS) private readonly bus: Bus,
    @Inject(LOOP_PORTS) private readonly loop: LoopPorts,
    @Inject(Permission) private readonly permission: Permission,
    @Inject(ApprovalInbox) private readonly inbox: ApprovalInbox,
    @Inject(ROUTER_SETTINGS) private readonly router: RouterSettingsSource,
  ) {}

  onModuleInit(): void {
    this.inbox.keys = () => Object.values(this.router.current().providers).flatMap(({ api_key }) => api_key || []);
    this.loop.hooks.exempt(GATE, ({ session_id, function_id }) => this.permission.evaluate(session_id, function_id).verdict === 'allow');
    this.bus.registerTrigger({
      type: hookTriggerType('pre_trigger'),
      function_id: GATE,
      config: { priority: LAST, on_error: 'fail_closed' },
    });
  }
}
