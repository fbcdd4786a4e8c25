import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import type { ProviderStreamRequest, Schema } from '#libs/contracts';
import { BUS, type Bus, IiiFunction } from '#libs/iii';
import { replyTo } from './agent.js';
import { demoModels } from './demo.provider.js';
import type { Prompt } from './reply.js';
import { streamReply } from './stream.js';

const streamRequest: Schema = {
  type: 'object',
  properties: { writer_ref: { type: 'object' }, model: { type: 'string' }, messages: { type: 'array' } },
  required: ['writer_ref', 'model', 'messages'],
};
const streamResponse: Schema = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] };
const internal = { internal: true };

/** The functions of the demo provider. */
@Controller()
export class DemoController {
  constructor(@Inject(BUS) private readonly bus: Bus) {}

  /** Streams an answer made by rules. `DEMO_DELAY_MS` in the environment is the pause before each word. */
  @IiiFunction({
    id: 'provider::demo::stream',
    description: 'Streams an answer made by fixed rules; no language model is asked.',
    request: streamRequest,
    response: streamResponse,
    metadata: internal,
  })
  async stream(@Payload() request: ProviderStreamRequest): Promise<{ ok: true }> {
    const writer = this.bus.openWriter(request.writer_ref);
    try {
      const prompt: Prompt = {
        messages: request.messages,
        tools: request.tools ?? [],
        responseFormat: request.response_format ?? null,
        thinkingLevel: request.thinking_level ?? null,
      };
      const header = { model: request.model, systemPrompt: request.system_prompt ?? null, pauseMs: delayMs(), timestamp: Date.now() };
      await streamReply(replyTo(prompt), prompt, header, writer);
      return { ok: true };
    } finally {
      writer.close();
    }
  }

  @IiiFunction({
    id: 'provider::demo::refresh_models',
    description: 'Puts the models of the demo provider into the catalog again.',
    request: { type: ['object', 'null'] },
    response: streamResponse,
    metadata: internal,
  })
  async refreshModels(): Promise<{ ok: true; count: number }> {
    const { count } = await this.bus.trigger<{ count: number }>({
      function_id: 'router::models::reconcile',
      payload: { provider: 'demo', models: demoModels },
    });
    return { ok: true, count };
  }
}

function delayMs(): number {
  const wanted = Number(process.env['DEMO_DELAY_MS'] ?? 0);
  return Number.isFinite(wanted) && wanted > 0 ? wanted : 0;
}
