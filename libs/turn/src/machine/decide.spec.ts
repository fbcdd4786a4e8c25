import { describe, expect, it } from 'vitest';
import type { AssistantMessage } from '#libs/contracts';
import { seedRecord } from '../functions/seed.js';
import type { CallCheckpoint, TurnRecord } from '../record/record.js';
import type { PlannedCall } from './calls.js';
import type { TurnInput } from './decision.js';
import { decide } from './machine.js';

const limits = { step_max_retries: 1, step_backoff_ms: 10, max_transient_resumes: 1, max_validation_retries: 1 };
const options: TurnRecord['options'] = {
  model: 'm',
  provider: null,
  functions: { allow: ['*'], deny: [], expose: 'native' },
  max_turns: 5,
  output: { type: 'text' },
  mode: null,
  system_prompt: null,
  system_prompt_strategy: 'enrich',
  thinking_level: null,
  metadata: null,
  max_children: 8,
};
const seeded = seedRecord({ session_id: 's', turn_id: 't', options, before: null, depth: 0, parent: null, messages: [], now: 0 });
const message: AssistantMessage = {
  role: 'assistant',
  content: [{ type: 'text', text: 'late' }],
  model: 'm',
  provider: 'p',
  stop_reason: 'end',
  timestamp: 0,
};
const planned = (id: string): PlannedCall => ({
  id,
  function_id: `f::${id}`,
  arguments: {},
  description: null,
  refusal: null,
  hooked: false,
  submission: null,
});
const inCalls = (...calls: [string, CallCheckpoint['state']][]): TurnRecord => ({
  ...seeded,
  phase: 'calls',
  turn_count: 1,
  calls: calls.map(([id, state]) => ({ id, function_id: `f::${id}`, state })),
});
const returned = (call_id: string) => ({
  type: 'call-returned' as const,
  now: 1,
  call_id,
  result: { content: [], details: null, is_error: false },
  plan: [planned('a'), planned('b')],
  waiting: false,
  limits,
});

describe('decide, where two executors of a step meet', () => {
  it('I5: a step does not end while another executor runs a call of it', () => {
    const { record, writes, next } = decide(inCalls(['a', 'triggered'], ['b', 'triggered']), returned('b'));
    expect(next).toEqual({ do: 'rest', outcome: 'skipped' });
    expect(record.calls.map(({ state }) => state)).toEqual(['triggered', 'done']);
    expect(writes.map(({ kind }) => kind)).toEqual(['append-entry', 'save-record']);
    expect(decide(record, returned('a'))).toMatchObject({ next: { do: 'rest', outcome: 'queued' }, record: { step: 1 } });
  });

  const late: TurnInput[] = [
    { type: 'generated', now: 1, message, plan: [], waiting: false, deliverable: { result: 'late', result_error: null }, limits },
    { type: 'generation-failed', now: 1, partial: message, failure: { code: 'x', message: 'x', retryable: false }, limits },
    { type: 'nothing-to-reply', now: 1, last: null, deliverable: { result: null, result_error: null }, waiting: false, limits },
    { type: 'vetoed', now: 1, failure: { code: 'x', message: 'x', retryable: false } },
  ];
  for (const input of late) {
    it(`I3, I4: "${input.type}" changes nothing once the generation of the step is stored`, () => {
      expect(decide(inCalls(['a', 'triggered']), input)).toMatchObject({ writes: [], next: { do: 'rest', outcome: 'skipped' } });
    });
  }

  it('I5: a late partial does not replace the stored message with calls', () => {
    const { writes } = decide(
      { ...inCalls(['a', 'triggered']), abort_requested: true },
      { type: 'stopped', now: 1, partial: message, returned: null },
    );
    expect(writes.filter(({ kind }) => kind === 'put-entry')).toEqual([]);
  });
});

describe('decide, once a stop was asked for (I12)', () => {
  const stopping: TurnRecord = { ...seeded, abort_requested: true };

  it('keeps a finished answer as text and ends the turn', () => {
    const { record, writes } = decide(stopping, {
      type: 'generated',
      now: 1,
      message,
      plan: [],
      waiting: true,
      deliverable: { result: 'late', result_error: null },
      limits,
    });
    expect(record.status).toBe('cancelled');
    expect(writes[0]).toMatchObject({
      kind: 'put-entry',
      entry: { message: { stop_reason: 'aborted', content: [{ type: 'text', text: 'late' }] } },
    });
  });
  it('keeps a result that came and begins no other call', () => {
    const { record, writes, next } = decide({ ...inCalls(['a', 'triggered'], ['b', 'ready']), abort_requested: true }, returned('a'));
    expect([record.status, next]).toEqual(['cancelled', { do: 'rest', outcome: 'ended' }]);
    const results = writes.flatMap((write) =>
      write.kind === 'append-entry' && 'message' in write.entry && write.entry.message.role === 'function_result'
        ? [write.entry.message]
        : [],
    );
    expect(results.map((r) => [r.function_call_id, r.is_error])).toEqual([
      ['a', false],
      ['b', true],
    ]);
  });
  it('ends a step that failed at once, without another try', () => {
    const { record, writes } = decide(stopping, {
      type: 'step-failed',
      now: 1,
      failure: { code: 'x', message: 'x', retryable: true },
      limits,
    });
    expect(record.status).toBe('cancelled');
    expect(writes.some(({ kind }) => kind === 'enqueue-step')).toBe(false);
  });
});

describe('decide, when things fail', () => {
  const failed = (retryable: boolean, partial: AssistantMessage | null = message) => ({
    type: 'generation-failed' as const,
    now: 100,
    partial,
    failure: { code: 'llm.x', message: 'it broke', retryable },
    limits,
  });

  it('tries a stream again that broke after some text, as often as it may, then fails with what came', () => {
    const first = decide(seeded, failed(true));
    expect(first.writes.at(-1)).toEqual({ kind: 'enqueue-step', payload: { session_id: 's', turn_id: 't', step: 0 }, notBefore: 110 });
    expect(first.writes[0]).toMatchObject({ kind: 'put-entry', entry: { message: { stop_reason: 'error' } } });
    const second = decide(first.record, failed(true));
    expect(second.record).toMatchObject({ status: 'failed', reason: 'llm.x', result_error: 'it broke' });
    expect(second.writes[0]).toMatchObject({ kind: 'put-entry', entry: { message: { stop_reason: 'error' } } });
  });
  it('leaves a failure before any text to the router, and one that cannot pass', () => {
    expect(decide(seeded, failed(true, null)).record.status).toBe('failed');
    expect(decide(seeded, failed(false)).record.status).toBe('failed');
  });
  it('doubles the pause between the tries of a step', () => {
    const again = {
      type: 'step-failed' as const,
      now: 0,
      failure: { code: 'x', message: 'x', retryable: true },
      limits: { ...limits, step_max_retries: 3 },
    };
    let record = seeded;
    const pauses: (number | undefined)[] = [];
    for (let tries = 0; tries < 3; tries += 1) {
      const decision = decide(record, again);
      const queued = decision.writes.find((write) => write.kind === 'enqueue-step');
      pauses.push(queued?.notBefore);
      record = decision.record;
    }
    expect(pauses).toEqual([10, 20, 40]);
    expect(decide(record, again).record.status).toBe('failed');
  });
});

describe('decide, when the conversation was summed up', () => {
  const data = {
    summary: 'Notes.',
    tail_start_entry_id: 'e_5',
    tokens_before: 900,
    summarized_head_tokens: 900,
    initial_token_count: 1_000,
    assembled_token_count: 200,
    usable_input_tokens: 800,
    effective_max_output_tokens: 100,
  };
  const compacted: TurnInput = { type: 'compacted', now: 1, data, usage: { input: 900, output: 50 } };

  it('stores the summary and what it has cost in one commit, and asks the model then', () => {
    const { record, writes, next } = decide(seeded, compacted);
    expect(next).toEqual({ do: 'generate' });
    expect(writes).toEqual([
      expect.objectContaining({
        kind: 'append-entry',
        entry: expect.objectContaining({ entry_id: 'e_t_0_compaction', custom: { custom_type: 'compaction', data } }),
      }),
      { kind: 'save-record', record, expectedVersion: seeded.version },
    ]);
    expect(record).toMatchObject({ phase: 'generate', turn_count: 0, totals: { input_tokens: 900, output_tokens: 50 } });
  });

  it('drops it when another executor has generated meanwhile, and when the turn is to stop', () => {
    expect(decide(inCalls(['a', 'ready']), compacted)).toMatchObject({ writes: [], next: { outcome: 'skipped' } });
    const stopped = decide({ ...seeded, abort_requested: true }, compacted);
    expect(stopped.record.status).toBe('cancelled');
    expect(JSON.stringify(stopped.writes)).not.toContain('Notes.');
  });

  it('counts what a failed summary has cost with the generation', () => {
    const generated: TurnInput = {
      type: 'generated',
      now: 1,
      message: { ...message, usage: { input: 10 } },
      plan: [],
      waiting: false,
      deliverable: { result: 'late', result_error: null },
      limits,
      spent: { input: 5, cost_usd: 0.1 },
    };
    expect(decide(seeded, generated).record.totals).toMatchObject({ input_tokens: 15, cost_usd: 0.1 });
  });
});
