import { Controller, Inject } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import {
  type FunctionResolveRequest,
  type FunctionResolveResponse,
  type FunctionTriggerRequest,
  type FunctionTriggerResponse,
  type HarnessFunctionId,
  harnessFunctions,
  type SendRequest,
  type SendResponse,
  type SpawnRequest,
  type SpawnResponse,
  type StatusReport,
  type StopRequest,
  type StopResponse,
  type TurnStepPayload,
  type TurnStepResult,
} from '#libs/contracts';
import { IiiFunction, type InvocationContext } from '#libs/iii';
import { TurnExecutor } from '../loop/executor.js';
import type { LoopPorts } from '../loop/ports.js';
import { SETTINGS, type SettingsSource, STEP_QUEUE, type StepQueue } from '../ports/index.js';
import { LOOP_PORTS } from '../tokens.js';
import { functionTrigger } from './function-trigger.js';
import { functionResolve } from './resolve.js';
import { send } from './send.js';
import { spawn } from './spawn.js';
import { status } from './status.js';
import { stop } from './stop.js';
import { sweepPending } from './sweep.js';

const internal = { internal: true } as const;
const contract = (id: HarnessFunctionId, metadata?: { readonly [key: string]: boolean }): MethodDecorator =>
  IiiFunction({ id, ...harnessFunctions[id], ...(metadata === undefined ? {} : { metadata }) });

/** The nine functions of the harness on the bus. Each hands over to the part that does the work. */
@Controller()
export class HarnessFunctions {
  constructor(
    @Inject(LOOP_PORTS) private readonly ports: LoopPorts,
    @Inject(TurnExecutor) private readonly executor: TurnExecutor,
    @Inject(STEP_QUEUE) private readonly queue: StepQueue,
    @Inject(SETTINGS) private readonly settings: SettingsSource,
  ) {}

  @contract('harness::send', internal)
  send(@Payload() request: SendRequest, @Ctx() context: InvocationContext): Promise<SendResponse> {
    return send(this.ports, request, context.trace);
  }

  @contract('harness::turn', { internal: true, trace_hidden: true })
  async turn(@Payload() payload: TurnStepPayload): Promise<TurnStepResult> {
    if (this.queue.arrive === undefined) return await this.executor.runStep(payload);
    const begun = this.queue.arrive(payload);
    const record = await this.ports.journal.load(payload.session_id);
    return { session_id: payload.session_id, status: record?.status ?? 'failed', ...(begun ? {} : { skipped: true }) };
  }

  @contract('harness::status')
  status(@Payload() request: { session_id: string }): Promise<StatusReport | null> {
    return status(this.ports.journal, request.session_id);
  }

  @contract('harness::stop', internal)
  stop(@Payload() request: StopRequest): Promise<StopResponse> {
    return stop(this.ports, this.executor, this.queue, request);
  }

  @contract('harness::spawn')
  spawn(@Payload() request: SpawnRequest, @Ctx() context: InvocationContext): Promise<SpawnResponse> {
    return spawn(this.ports, request, context.metadata, context.trace);
  }

  @contract('harness::function::trigger', internal)
  functionTrigger(@Payload() request: FunctionTriggerRequest, @Ctx() context: InvocationContext): Promise<FunctionTriggerResponse> {
    return functionTrigger(this.ports, request, context.signal);
  }

  @contract('harness::function::resolve', internal)
  functionResolve(@Payload() request: FunctionResolveRequest): Promise<FunctionResolveResponse> {
    return functionResolve(this.ports, request);
  }

  @contract('harness::sweep-pending', internal)
  sweepPending(): Promise<{ ok: boolean; resolved: number }> {
    return sweepPending(this.ports, (turn) => stop(this.ports, this.executor, this.queue, turn));
  }

  @contract('harness::on-config-change', internal)
  async onConfigChange(): Promise<{ ok: boolean }> {
    await this.settings.reload?.();
    return { ok: true };
  }
}
