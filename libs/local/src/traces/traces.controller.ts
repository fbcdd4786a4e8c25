import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { IiiFunction } from '#libs/iii';
import { CLOCK, type Clock, JOURNAL, type Journal } from '#libs/turn';
import { readTrace, type TurnSpans } from './read.js';
import { SpanRecorder } from './recorder.js';
import { schemas } from './schemas.js';
import { SpanTable } from './span-table.js';

/** Traces of turns. */
@Controller()
export class TracesController {
  constructor(
    @Inject(SpanTable) private readonly table: SpanTable,
    @Inject(SpanRecorder) private readonly recorder: SpanRecorder,
    @Inject(JOURNAL) private readonly journal: Journal,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  @IiiFunction({
    id: 'harness-traces::get',
    description: "Gives the spans of a turn and of its sub-agents; of the session's latest turn when none is named.",
    ...schemas.get,
    metadata: { internal: true },
  })
  async get(@Payload() { session_id, turn_id }: { session_id: string; turn_id?: string | null }): Promise<TurnSpans | null> {
    await this.recorder.flush();
    return await readTrace(this.table, this.journal, session_id, turn_id ?? undefined, this.clock.now());
  }
}
