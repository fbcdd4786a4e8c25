import { Controller, Inject } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import { BUS, type Bus, IiiFunction, type InvocationContext } from '#libs/iii';
import { messageTokens, type TokensByRole, textTokens, tokensByRole, toolTokens } from '#libs/turn';
import { ContextAssembler } from './assembler.js';
import { Compactor } from './compactor.js';
import { budgetOf } from './limits.js';
import { type Pruned, prune } from './prune.js';
import {
  type AssembleRequest,
  type AssembleResponse,
  type CompactRequest,
  type CompactResponse,
  type CountRequest,
  leaseKeyOf,
  messagesOf,
  type PruneRequest,
} from './requests.js';
import { schemas } from './schemas.js';

const MAX_INSTRUCTIONS = 2_000;

/** What a model is shown of a conversation: `context::*`. */
@Controller()
export class ContextController {
  constructor(
    @Inject(BUS) private readonly bus: Bus,
    @Inject(ContextAssembler) private readonly assembler: ContextAssembler,
    @Inject(Compactor) private readonly compactor: Compactor,
  ) {}

  @IiiFunction({
    id: 'context::assemble',
    description:
      'Makes of a conversation what a model takes: the system prompt and the messages within its limits. Prunes old results, sums up the older part or shortens results where that is needed. Throws context/overflow when nothing makes it fit.',
    ...schemas.assemble,
  })
  assemble(@Payload() request: AssembleRequest, @Ctx() context: InvocationContext): Promise<AssembleResponse> {
    return this.assembler.assemble(request, context.signal);
  }

  @IiiFunction({
    id: 'context::compact',
    description:
      'Sums up the older part of a conversation and says where the part begins that is left as it is. Stores nothing: that is up to the caller.',
    ...schemas.compact,
  })
  async compact(@Payload() request: CompactRequest, @Ctx() context: InvocationContext): Promise<CompactResponse> {
    const { model } = request;
    const options = request.options ?? {};
    const messages = messagesOf(request).filter((message) => message.role !== 'custom');
    if (messages.length === 0) return { status: 'empty' };
    const budget = await budgetOf(this.bus, model, {});
    const instructions = options.instructions?.trim().slice(0, MAX_INSTRUCTIONS) ?? '';
    const previous = options.previous_summary ?? null;
    const sums = [0];
    for (const message of messages) sums.push((sums.at(-1) ?? 0) + messageTokens(message));
    const outcome = await this.compactor.compact({
      model,
      budget,
      messages,
      sums,
      previous,
      instructions: instructions === '' ? null : instructions,
      tail_turns: options.tail_turns ?? 2,
      preserve: options.preserve_recent_tokens ?? null,
      room: budget.usable,
      lease_key: leaseKeyOf(options.lease_key, messages),
      signal: context.signal,
    });
    switch (outcome.kind) {
      case 'ok': {
        const { summary, start, head_tokens } = outcome;
        return {
          status: 'ok',
          summary,
          tail_start_index: start === messages.length ? null : (request.messages ?? []).indexOf(messages[start] as (typeof messages)[0]),
          tokens_before: head_tokens,
          tokens_after: textTokens(summary) + (sums[messages.length] ?? 0) - head_tokens,
          used_prior_summary: previous !== null && previous.trim() !== '',
        };
      }
      case 'failed':
        return { status: 'overflow' };
      case 'busy':
      case 'empty':
        return { status: outcome.kind };
      default: {
        const unknown: never = outcome;
        throw new Error(`unknown outcome ${JSON.stringify(unknown)}`);
      }
    }
  }

  @IiiFunction({
    id: 'context::prune',
    description: 'Replaces old, long results in a conversation by placeholders. Removes no message.',
    ...schemas.prune,
  })
  prune(@Payload() request: PruneRequest): Pruned {
    const options = request.options ?? {};
    return prune(messagesOf(request), {
      max_output_chars: options.max_output_chars ?? 2_000,
      min_free_tokens: options.min_free_tokens ?? 20_000,
      protect_recent_tokens: options.protect_recent_tokens ?? 40_000,
      protected_functions: options.protected_functions ?? [],
      step: 1,
    });
  }

  @IiiFunction({
    id: 'context::count-tokens',
    description: 'Estimates what a conversation takes as input of a model, in tokens: content as it is sent, four characters a token.',
    ...schemas.countTokens,
  })
  count(@Payload() request: CountRequest): {
    tokens: number;
    estimator: 'heuristic';
    by_role: TokensByRole;
    by_part?: { [name: string]: number };
    tools_tokens?: number;
  } {
    const by_role = tokensByRole(messagesOf(request));
    const tools = request.tools == null ? null : toolTokens(request.tools);
    const messages = by_role.user + by_role.assistant + by_role.function_result + by_role.custom;
    return {
      tokens: messages + textTokens(request.system_prompt ?? '') + (tools ?? 0),
      estimator: 'heuristic',
      by_role,
      ...(request.parts == null
        ? {}
        : { by_part: Object.fromEntries(Object.entries(request.parts).map(([name, text]) => [name, textTokens(text)])) }),
      ...(tools === null ? {} : { tools_tokens: tools }),
    };
  }
}
