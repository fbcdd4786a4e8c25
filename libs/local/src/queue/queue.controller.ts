import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { HarnessError, type JsonValue } from '#libs/contracts';
import { IiiFunction } from '#libs/iii';
import type { QueueDefinition } from './definition.js';
import { JobQueue } from './job-queue.js';
import { queueFunctions as contracts } from './schemas.js';

/** A dead job, as `engine::queue::dlq_messages` lists it. `created_at` is ms since the epoch. */
export interface DeadMessage {
  id: string;
  queue: string;
  function_id: string;
  payload: JsonValue;
  error: string | null;
  attempts: number;
  created_at: number;
}

type Named<T = object> = T & { queue?: string; topic?: string };
const nameOf = ({ queue, topic }: Named): string => queue ?? topic ?? '';
const invalid = (detail: string): HarnessError => new HarnessError('queue/invalid_request', detail);

/** The functions of the queue. */
@Controller()
export class QueueController {
  constructor(@Inject(JobQueue) private readonly queue: JobQueue) {}

  @IiiFunction({ id: 'queue::define', ...contracts.define, invalid })
  async define(@Payload() { queue, config }: { queue: string; config: QueueDefinition }): Promise<{ queue: string; changed: boolean }> {
    if (config.type === 'fifo' && (config.message_group_field ?? '') === '')
      throw invalid('config.message_group_field is missing: a fifo queue needs it');
    return { queue, changed: await this.queue.define(queue, config) };
  }

  @IiiFunction({ id: 'iii::queue::redrive', ...contracts.redrive, invalid })
  async redrive(@Payload() request: Named): Promise<{ queue: string; redriven: number }> {
    return { queue: nameOf(request), redriven: await this.queue.redrive(nameOf(request), null) };
  }

  @IiiFunction({ id: 'iii::queue::redrive_message', ...contracts.redriveMessage, invalid })
  async redriveMessage(
    @Payload() request: Named<{ message_id: string }>,
  ): Promise<{ queue: string; message_id: string; redriven: number }> {
    return {
      queue: nameOf(request),
      message_id: request.message_id,
      redriven: await this.queue.redrive(nameOf(request), request.message_id),
    };
  }

  /** `redriven` is 1 when the job was there. */
  @IiiFunction({ id: 'iii::queue::discard_message', ...contracts.discardMessage, invalid })
  async discardMessage(
    @Payload() request: Named<{ message_id: string }>,
  ): Promise<{ queue: string; message_id: string; redriven: number }> {
    return {
      queue: nameOf(request),
      message_id: request.message_id,
      redriven: (await this.queue.discard(nameOf(request), request.message_id)) ? 1 : 0,
    };
  }

  @IiiFunction({ id: 'engine::queue::dlq_messages', ...contracts.dlqMessages, invalid })
  dlqMessages(@Payload() request: Named<{ limit?: number | null; offset?: number | null }>): DeadMessage[] {
    return this.queue.dead(nameOf(request), Math.min(request.limit ?? 50, 500), request.offset ?? 0).map((job) => ({
      id: job.receipt,
      queue: job.queue,
      function_id: job.function_id,
      payload: JSON.parse(job.payload) as JsonValue,
      error: job.last_error,
      attempts: job.attempts,
      created_at: job.created_at,
    }));
  }
}
