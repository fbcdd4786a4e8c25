import type {
  AssistantMessage,
  ContentBlock,
  JsonValue,
  Model,
  ProviderStreamRequest,
  StopReason,
  StreamFrame,
  Usage,
} from '#libs/contracts';
import type { Bus, ChannelWriter } from '#libs/iii';

/** What the model does in one generation: whole content, or frames of its own, or anything by hand. */
export type Scripted =
  | { content: ContentBlock[]; stop_reason?: StopReason; usage?: Usage }
  | { frames: StreamFrame[] }
  | ((request: ProviderStreamRequest, writer: ChannelWriter) => Promise<void> | void);

/** Makes a call block, as `agent_trigger` exposure has it. */
export const agentCall = (id: string, fn: string, payload: JsonValue = {}): ContentBlock => ({
  type: 'function_call',
  id,
  function_id: 'agent_trigger',
  arguments: { function: fn, description: `calls ${fn}`, payload },
});
export const text = (value: string): ContentBlock => ({ type: 'text', text: value });

/**
 * The one fake model of the tests: a provider that plays a script and records every request. A generation that nobody
 * scripted is an error frame; `assertDone` fails when scripted ones were not asked for.
 */
export class ScriptedModel {
  readonly requests: ProviderStreamRequest[] = [];
  private readonly script: Scripted[];
  /** Answers when the script is used up; without it that is an error. */
  fallback: ((request: ProviderStreamRequest) => Scripted) | undefined;

  constructor(...script: Scripted[]) {
    this.script = [...script];
  }

  /** Answers some requests beside the script. */
  apart: ((request: ProviderStreamRequest) => Scripted | undefined) | undefined;

  /** Adds generations to the script. */
  plays(...script: Scripted[]): this {
    this.script.push(...script);
    return this;
  }

  /** Registers the model as provider `scripted` with the model `scripted-1`; `limits` are those of its catalog row. */
  async register(bus: Bus, id = 'scripted', keep: 'all' | 'none' = 'all', limits: Partial<Model> = {}): Promise<void> {
    bus.registerFunction({ id: `provider::${id}::stream`, metadata: { internal: true } }, async (payload) => {
      const request = payload as ProviderStreamRequest;
      if (keep === 'all') this.requests.push(request);
      const writer = bus.openWriter(request.writer_ref);
      const next = this.apart?.(request) ??
        this.script.shift() ??
        this.fallback?.(request) ?? { frames: [{ type: 'error', error: unscripted(request) }] };
      await play(next, request, writer, id);
      writer.close();
      return { ok: true };
    });
    const model: Model = {
      id: `${id}-1`,
      provider: id,
      context_window: 200_000,
      max_output_tokens: 8_000,
      supports_tools: true,
      pricing: { input: 1, output: 2 },
      ...limits,
    };
    await bus.trigger({ function_id: 'router::provider::register', payload: { id, display_name: 'Scripted', models: [model] } });
  }

  /** Fails when a scripted generation was not used. */
  assertDone(): void {
    if (this.script.length > 0) throw new Error(`${this.script.length} scripted generations were not asked for`);
  }
}

const unscripted = (request: ProviderStreamRequest): AssistantMessage => ({
  role: 'assistant',
  content: [],
  model: request.model,
  provider: 'scripted',
  stop_reason: 'error',
  error_kind: 'permanent',
  error_message: 'nobody scripted this generation',
  timestamp: 0,
});

async function play(step: Scripted, request: ProviderStreamRequest, writer: ChannelWriter, provider: string): Promise<void> {
  if (typeof step === 'function') return await step(request, writer);
  if ('frames' in step) {
    for (const frame of step.frames) await writer.send(frame);
    return;
  }
  const calls = step.content.some((block) => block.type === 'function_call');
  const message: AssistantMessage = {
    role: 'assistant',
    content: step.content,
    model: request.model,
    provider,
    timestamp: Date.now(),
    stop_reason: step.stop_reason ?? (calls ? 'function_call' : 'end'),
    usage: step.usage ?? { input: 10, output: 5 },
  };
  await writer.send({ type: 'start' } satisfies StreamFrame);
  for (const block of step.content) {
    if (block.type !== 'text') continue;
    await writer.send({ type: 'text_start' } satisfies StreamFrame);
    await writer.send({ type: 'text_delta', delta: block.text } satisfies StreamFrame);
    await writer.send({ type: 'text_end' } satisfies StreamFrame);
  }
  await writer.send({ type: 'done', message } satisfies StreamFrame);
}
