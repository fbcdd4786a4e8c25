import { Inject, Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import { CronJob } from 'cron';
import { errorMessage, HarnessError } from '#libs/contracts';
import {
  BUS,
  type Bus,
  type Registration,
  type TriggerRegistration,
  type TriggerTypeDefinition,
  type TriggerTypeHandler,
  violation,
} from '#libs/iii';
import { fire } from '../triggers/fire.js';
import { type CronExpression, parseCron } from './expression.js';

const cronType = {
  id: 'cron',
  description: 'Fires at the times of a cron expression, in UTC.',
  trigger_request_format: {
    type: 'object',
    properties: {
      expression: { type: 'string', description: 'second minute hour day-of-month month day-of-week, perhaps year' },
      condition_function_id: { type: ['string', 'null'], description: 'Called with the event first; false skips it.' },
    },
    required: ['expression'],
  },
  call_request_format: {
    type: 'object',
    properties: {
      trigger: { const: 'cron' },
      job_id: { type: 'string' },
      scheduled_time: { type: 'string', format: 'date-time' },
      actual_time: { type: 'string', format: 'date-time' },
    },
    required: ['trigger', 'job_id', 'scheduled_time', 'actual_time'],
  },
} as const satisfies TriggerTypeDefinition;

/** The trigger type `cron`: one scheduled job for each binding. A run that is due while the one before goes on is left out. */
@Injectable()
export class CronTriggers implements TriggerTypeHandler, OnModuleInit, OnApplicationShutdown {
  private readonly logger = new Logger('cron');
  private type: Registration | undefined;

  constructor(
    @Inject(BUS) private readonly bus: Bus,
    @Inject(SchedulerRegistry) private readonly scheduler: SchedulerRegistry,
  ) {}

  onModuleInit(): void {
    this.type = this.bus.registerTriggerType(cronType, this);
  }

  onApplicationShutdown(): void {
    this.type?.unregister();
  }

  /** @throws HarnessError `cron/invalid_request` when the expression is not one. */
  registerTrigger(trigger: TriggerRegistration): void {
    const wrong = violation(cronType.trigger_request_format, trigger.config);
    if (wrong !== null) throw new HarnessError('cron/invalid_request', `config of a cron trigger: ${wrong}`);
    const parsed = parseCron((trigger.config as { expression: string }).expression);
    if (!parsed.ok) throw new HarnessError('cron/invalid_request', `expression ${parsed.problem}`);
    const job = this.jobOf(trigger, parsed.value);
    this.scheduler.addCronJob(trigger.id, job);
    job.start();
  }

  unregisterTrigger(trigger: TriggerRegistration): void {
    if (this.scheduler.doesExist('cron', trigger.id)) this.scheduler.deleteCronJob(trigger.id);
  }

  private jobOf(trigger: TriggerRegistration, { fields, years }: CronExpression): CronJob {
    let due = new Date(0);
    let running = false;
    const tick = (): void => {
      const scheduled = due;
      due = job.nextDate().toJSDate();
      if (running || years?.has(scheduled.getUTCFullYear()) === false) return;
      running = true;
      this.run(trigger, scheduled)
        .catch((error: unknown) => this.logger.warn(`${trigger.function_id} failed: ${errorMessage(error)}`))
        .finally(() => {
          running = false;
        });
    };
    const job = CronJob.from({ cronTime: fields, onTick: tick, timeZone: 'UTC', unrefTimeout: true });
    due = job.nextDate().toJSDate();
    return job;
  }

  private run(trigger: TriggerRegistration, scheduled: Date): Promise<void> {
    const times = { scheduled_time: scheduled.toISOString(), actual_time: new Date().toISOString() };
    return fire(this.bus, trigger, { trigger: 'cron', job_id: trigger.id, ...times });
  }
}
