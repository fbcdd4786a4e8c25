import type { AssistantMessage, ProviderStreamRequest, StreamFrame } from '#libs/contracts';
import type { Bus } from '#libs/iii';

/** A model in the process that calls `bench::add` once and then answers; it takes no time of its own. */
export async function benchModel(bus: Bus): Promise<void> {
  bus.registerFunction({ id: 'bench::add' }, () => ({ sum: 3 }));
  bus.registerFunction({ id: 'provider::bench::stream', metadata: { internal: true } }, async (payload) => {
    const { messages, model, writer_ref } = payload as ProviderStreamRequest;
    const writer = bus.openWriter(writer_ref);
    const asked = messages.at(-1)?.role === 'user';
    const content: AssistantMessage['content'] = asked
      ? [
          {
            type: 'function_call',
            id: `c${messages.length}`,
            function_id: 'agent_trigger',
            arguments: { function: 'bench::add', description: 'adds', payload: { a: 1, b: 2 } },
          },
        ]
      : [{ type: 'text', text: 'The sum is 3.' }];
    const message: AssistantMessage = {
      role: 'assistant',
      content,
      model,
      provider: 'bench',
      stop_reason: asked ? 'function_call' : 'end',
      timestamp: Date.now(),
      usage: { input: 100, output: 20 },
    };
    await writer.send({ type: 'start' } satisfies StreamFrame);
    await writer.send({ type: 'done', message } satisfies StreamFrame);
    writer.close();
    return { ok: true };
  });
  const model = { id: 'bench-1', provider: 'bench', context_window: 1_000_000, max_output_tokens: 8_000 };
  await bus.trigger({ function_id: 'router::provider::register', payload: { id: 'bench', models: [model] } });
}
