import { Inject, Injectable } from '@nestjs/common';
import type { AgentMessage, Usage } from '#libs/contracts';
import { BUS, type Bus } from '#libs/iii';
import { textTokens } from '#libs/turn';
import { tailStart } from './exchanges.js';
import { CompactionLease } from './lease.js';
import type { Budget, ModelInput } from './limits.js';
import { summarise } from './summariser.js';

/** A conversation to make shorter. `sums[n]` is what its first n messages take. */
export interface CompactionTask {
  model: ModelInput;
  budget: Budget;
  messages: readonly AgentMessage[];
  sums: readonly number[];
  previous: string | null;
  instructions: string | null;
  tail_turns: number;
  /** Tokens at the end that stay as they are; null = a quarter of what the model takes. */
  preserve: number | null;
  /** Tokens that the tail may have at most. */
  room: number;
  lease_key: string;
  signal: AbortSignal;
}

/** `failed`: no summary came, or one that gains nothing. `usage` is what was spent in any case. */
export type CompactionOutcome =
  | { kind: 'ok'; summary: string; start: number; head_tokens: number; usage: Usage | null }
  | { kind: 'failed'; usage: Usage | null }
  | { kind: 'busy' }
  | { kind: 'empty' };

const SUMMARY_PART = 0.15;
const SMALLEST_SUMMARY = 200;
const LARGEST_SUMMARY = 8_000;
const PRESERVED_PART = 0.25;

/** The longest summary for a model, in tokens. */
export const summaryLimit = ({ usable }: Budget): number =>
  Math.max(SMALLEST_SUMMARY, Math.min(LARGEST_SUMMARY, Math.floor(usable * SUMMARY_PART)));

/** Sums up the older part of conversations, one process at a time for each. */
@Injectable()
export class Compactor {
  constructor(
    @Inject(BUS) private readonly bus: Bus,
    @Inject(CompactionLease) private readonly lease: CompactionLease,
  ) {}

  async compact(task: CompactionTask): Promise<CompactionOutcome> {
    const { messages, sums, budget, previous } = task;
    const preserve = Math.min(task.preserve ?? Math.floor(budget.usable * PRESERVED_PART), task.room);
    const start = tailStart(messages, sums, { turns: task.tail_turns, preserve, room: task.room });
    if (start === 0) return { kind: 'empty' };
    const head_tokens = sums[start] ?? 0;
    const work = async (): Promise<CompactionOutcome> => {
      const { summary, usage } = await summarise(this.bus, {
        ...task,
        messages: messages.slice(0, start),
        max_tokens: summaryLimit(budget),
        usable: budget.usable,
        max_output: budget.max_output,
      });
      const gains = summary !== null && textTokens(summary) < head_tokens + textTokens(previous ?? '');
      return gains ? { kind: 'ok', summary, start, head_tokens, usage } : { kind: 'failed', usage };
    };
    return (await this.lease.with(task.lease_key, work)) ?? { kind: 'busy' };
  }
}
