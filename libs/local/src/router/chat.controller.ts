import { Controller, Inject } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import { type AssistantMessage, type ChatRequest, type ChatResponse, HarnessError, type Usage } from '#libs/contracts';
import { IiiFunction, type InvocationContext } from '#libs/iii';
import { type ChatCall, ChatService } from './chat.js';
import { ProviderRegistry } from './providers.js';
import { route } from './routing.js';
import { schemas } from './schemas.js';

/** Model calls: `router::chat`, `::complete`, `::abort`, `::route`. */
@Controller()
export class RouterChatController {
  constructor(
    @Inject(ChatService) private readonly chats: ChatService,
    @Inject(ProviderRegistry) private readonly registry: ProviderRegistry,
  ) {}

  /** Streams frames to `writer_ref` and answers when the terminal one is written. Failures are answers with `ok: false`. */
  @IiiFunction({
    id: 'router::chat',
    description:
      'Streams a completion to a channel: finds the provider of the model, passes its frames on and reports how the stream ended.',
    ...schemas.chat,
  })
  chat(@Payload() request: ChatRequest, @Ctx() context: InvocationContext): Promise<ChatResponse> {
    return this.chats.stream(request, context.trace);
  }

  /** As a chat without a channel: answers with the whole message. Throws the failure of the chat. */
  @IiiFunction({ id: 'router::complete', description: 'Runs a completion to its end and returns the whole message.', ...schemas.complete })
  async complete(
    @Payload() request: ChatCall,
    @Ctx() context: InvocationContext,
  ): Promise<{ message: AssistantMessage; usage: Usage | null; provider: string; model: string }> {
    const { message, provider, model, failure } = await this.chats.run(request, () => undefined, context.signal, context.trace);
    if (failure !== undefined) throw new HarnessError(failure.code, failure.message, { retry: failure.retryable ? 'retry' : 'terminal' });
    return { message, usage: message.usage ?? null, provider, model };
  }

  @IiiFunction({
    id: 'router::abort',
    description: 'Cancels a running chat or completion by its request_id; says whether there was one.',
    ...schemas.abort,
  })
  abort(@Payload() { request_id }: { request_id: string }): { aborted: boolean } {
    return { aborted: this.chats.abort(request_id) };
  }

  @IiiFunction({
    id: 'router::route',
    description: 'Says which provider a model would go to, and which providers list it.',
    ...schemas.route,
  })
  route(@Payload() { model, provider }: { model: string; provider?: string | null }): { provider: string; candidates: readonly string[] } {
    return route(model, provider, this.registry.settings, this.registry);
  }
}
