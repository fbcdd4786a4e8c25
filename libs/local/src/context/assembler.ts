import { Inject, Injectable } from '@nestjs/common';
import { type AgentMessage, HarnessError } from '#libs/contracts';
import { BUS, type Bus } from '#libs/iii';
import { withSummary } from '#libs/prompts';
import { IMAGE_TOKENS, messageTokens, startingWithUser, textTokens, tokensByRole, toolTokens } from '#libs/turn';
import { type CompactionOutcome, Compactor, summaryLimit } from './compactor.js';
import { cutPoints } from './exchanges.js';
import { type Budget, budgetOf } from './limits.js';
import { type Measured, Measures } from './measured.js';
import { surplusImages, withoutOldImages } from './media.js';
import { prune } from './prune.js';
import { type Applied, type AssembleRequest, type AssembleResponse, leaseKeyOf, messagesOf } from './requests.js';
import { reduceResults, SMALLEST_RESULT } from './results.js';
import { trimmed } from './trim.js';

const MAX_RESULT_TOKENS = 20_000;
const TAIL_TURNS = 2;
/** Room for the message that stands before a conversation that begins in its middle. */
const LEAD_TOKENS = 64;
/** Parts of what the model takes: of images, of one result, of results that are not pruned, of what pruning has to free. */
const IMAGES_PART = 0.5;
const RESULT_PART = 0.5;
const UNPRUNED_PART = 0.4;
const PRUNED_PART = 0.2;

/** A context that is being put together. */
interface Draft {
  system: string;
  messages: readonly AgentMessage[];
}

/** Puts contexts together: what fits goes as it is, what does not is pruned, summed up or shortened, in this order. */
@Injectable()
export class ContextAssembler {
  private readonly measures = new Measures();
  /** How large a conversation was when its summary failed: it is not tried again before it has grown. */
  private readonly failedAt = new Map<string, number>();

  constructor(
    @Inject(BUS) private readonly bus: Bus,
    @Inject(Compactor) private readonly compactor: Compactor,
  ) {}

  /** Throws `context/overflow` when nothing makes it fit. */
  async assemble(request: AssembleRequest, signal: AbortSignal): Promise<AssembleResponse> {
    const options = request.options ?? {};
    const budget = await budgetOf(this.bus, request.model, options);
    const limit =
      options.max_result_tokens ?? Math.max(SMALLEST_RESULT, Math.min(MAX_RESULT_TOKENS, Math.floor(budget.usable * RESULT_PART)));
    const messages = messagesOf(request);
    const shown = messages.some(isCustom) ? messages.filter((message) => !isCustom(message)) : messages;
    const measured = this.measures.of(options.lease_key ?? null, shown, limit);
    const answer = await new Assembly(request, budget, measured, { compactor: this.compactor, failedAt: this.failedAt, signal }).run();
    const start = answer.applied.tail_start_index;
    if (shown !== messages && start != null) answer.applied.tail_start_index = messages.indexOf(shown[start] as AgentMessage);
    return answer;
  }
}

const isCustom = ({ role }: AgentMessage): boolean => role === 'custom';

interface Means {
  compactor: Compactor;
  failedAt: Map<string, number>;
  signal: AbortSignal;
}

/** One context on its way. */
class Assembly {
  private readonly tools: number;
  /** Tokens that are neither messages nor the system prompt. */
  private readonly fixed: number;
  private readonly applied: Applied;

  constructor(
    private readonly request: AssembleRequest,
    private readonly budget: Budget,
    private readonly measured: Measured,
    private readonly means: Means,
  ) {
    this.tools = toolTokens(request.tools ?? []);
    this.fixed = this.tools + (this.options.request_overhead_tokens ?? 0);
    this.applied = {
      initial_token_count: this.fixed + textTokens(this.system()) + measured.given,
      capped_parts: measured.capped_parts,
      capped_tokens: Math.max(0, measured.given - measured.tokens),
      pruned: false,
      pruned_tokens: 0,
      compacted: false,
    };
  }

  private get options(): NonNullable<AssembleRequest['options']> {
    return this.request.options ?? {};
  }

  async run(): Promise<AssembleResponse> {
    const { measured, budget } = this;
    const surplus = surplusImages(measured.images, Math.floor((budget.usable * IMAGES_PART) / IMAGE_TOKENS));
    const whole: Draft = {
      system: this.system(),
      messages: surplus === 0 ? measured.messages : withoutOldImages(measured.messages, surplus),
    };
    if (this.fits(whole)) return this.answer(whole);
    const pruned = this.pruned(whole);
    if (this.fits(pruned)) return this.answer(pruned);
    return this.answer((await this.compacted(whole)) ?? this.shortened(pruned));
  }

  private system(summary = this.options.previous_summary ?? null): string {
    return withSummary(this.request.system_prompt ?? '', summary);
  }

  /** Tokens that messages may take beside a system prompt. */
  private room(system: string): number {
    return this.budget.usable - this.fixed - textTokens(system) - LEAD_TOKENS;
  }

  private fits({ system, messages }: Draft): boolean {
    return this.fixed + textTokens(system) + this.size(messages) + (messages[0]?.role === 'user' ? 0 : LEAD_TOKENS) <= this.budget.usable;
  }

  private size(messages: readonly AgentMessage[]): number {
    return messages === this.measured.messages ? this.measured.tokens : tokens(messages);
  }

  private pruned(draft: Draft): Draft {
    if (this.options.allow_prune === false) return draft;
    const { usable } = this.budget;
    const min = Math.min(20_000, Math.floor(usable * PRUNED_PART));
    const { messages, pruned_parts, pruned_tokens } = prune(draft.messages, {
      protect_recent_tokens: Math.min(40_000, Math.floor(usable * UNPRUNED_PART)),
      min_free_tokens: min,
      max_output_chars: 2_000,
      protected_functions: this.options.protected_functions ?? [],
      step: Math.max(1, min),
    });
    this.applied.pruned = pruned_parts > 0;
    this.applied.pruned_tokens = pruned_tokens;
    return { ...draft, messages };
  }

  /** The conversation with its older part summed up; null when that is not allowed, not possible, or would not do. */
  private async compacted({ messages }: Draft): Promise<Draft | null> {
    const { options, budget, means } = this;
    const room = this.room(this.system('')) - summaryLimit(budget) - sectionTokens();
    const last = lastExchange(messages);
    const possible = reduceResults(last, room) !== null;
    if (!possible && reduceResults(last, this.room(this.system())) === null) throw this.overflow(messages);
    if (!possible || options.allow_compaction === false) return null;
    const key = leaseKeyOf(options.lease_key, messages);
    const size = this.size(messages);
    const failedAt = means.failedAt.get(key);
    if (failedAt !== undefined && size >= failedAt && size < failedAt + budget.usable * 0.1) return null;
    const outcome = await means.compactor.compact({
      model: this.request.model,
      budget,
      messages,
      sums: sumsOf(messages),
      previous: options.previous_summary ?? null,
      instructions: null,
      tail_turns: options.tail_turns ?? TAIL_TURNS,
      preserve: null,
      room: Math.max(0, room),
      lease_key: key,
      signal: means.signal,
    });
    return this.taken(outcome, messages, key, size);
  }

  private taken(outcome: CompactionOutcome, messages: readonly AgentMessage[], key: string, size: number): Draft | null {
    const { failedAt } = this.means;
    if ('usage' in outcome && outcome.usage !== null) this.applied.summary_usage = outcome.usage;
    if (outcome.kind === 'busy' || outcome.kind === 'empty') return null;
    failedAt.delete(key);
    const system = outcome.kind === 'ok' ? this.system(outcome.summary) : '';
    const tail = outcome.kind === 'ok' ? reduceResults(messages.slice(outcome.start), this.room(system)) : null;
    if (outcome.kind === 'failed' || tail === null) {
      failedAt.set(key, size);
      if (failedAt.size > MAX_FAILED) failedAt.delete(failedAt.keys().next().value ?? '');
      return null;
    }
    const { summary, start, head_tokens } = outcome;
    Object.assign(this.applied, {
      pruned: false,
      pruned_tokens: 0,
      compacted: true,
      summary,
      tail_start_index: start === messages.length ? null : start,
      tokens_before: head_tokens,
      summarized_head_tokens: head_tokens,
    } satisfies Partial<Applied>);
    return { system, messages: tail };
  }

  /** The conversation without its oldest exchanges, and with shorter results where that is not enough. */
  private shortened({ system, messages }: Draft): Draft {
    const room = this.room(system);
    const kept = trimmed(messages, room, Math.max(1, Math.floor(this.budget.usable * PRUNED_PART)));
    const reduced = reduceResults(kept, room);
    if (reduced === null) throw this.overflow(messages);
    return { system, messages: reduced };
  }

  private answer({ system, messages }: Draft): AssembleResponse {
    const { budget, tools, measured } = this;
    const led = startingWithUser([...messages]);
    const by_role = messages === measured.messages && led.length === messages.length ? { ...measured.byRole } : tokensByRole(led);
    const system_prompt_tokens = textTokens(system);
    const sum = by_role.user + by_role.assistant + by_role.function_result + by_role.custom;
    const parts = this.request.parts ?? null;
    return {
      system_prompt: system,
      messages: led,
      token_count: this.fixed + system_prompt_tokens + sum,
      usable: budget.usable,
      effective_max_output_tokens: budget.max_output,
      model_resolved: budget.resolved,
      applied: this.applied,
      breakdown: {
        by_role,
        ...(parts === null ? {} : { by_part: Object.fromEntries(Object.entries(parts).map(([name, text]) => [name, textTokens(text)])) }),
        system_prompt_tokens,
        tools_tokens: tools,
        estimator: 'heuristic',
      },
    };
  }

  private overflow(messages: readonly AgentMessage[]): HarnessError {
    const { usable } = this.budget;
    const rest = this.fixed + textTokens(this.system());
    return new HarnessError(
      'context/overflow',
      `the context takes about ${rest + tokens(messages)} tokens, of which ${rest} are system prompt, functions and framing and ${tokens(lastExchange(messages))} the last message; the model takes ${usable}, and nothing that may be left out makes it fit`,
    );
  }
}

/** What a summary takes besides its own text. */
const sectionTokens = (): number => textTokens(withSummary('', '.'));

const MAX_FAILED = 1_000;

const tokens = (messages: readonly AgentMessage[]): number => messages.reduce((sum, message) => sum + messageTokens(message), 0);

const sumsOf = (messages: readonly AgentMessage[]): number[] => {
  const sums = [0];
  for (const message of messages) sums.push((sums.at(-1) ?? 0) + messageTokens(message));
  return sums;
};

/** What the model is to answer now: never left out. */
const lastExchange = (messages: readonly AgentMessage[]): AgentMessage[] => messages.slice(cutPoints(messages).at(-1) ?? 0);
