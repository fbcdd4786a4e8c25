import { Controller, Inject, Injectable, Module } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import type { ProviderStreamRequest } from '#libs/contracts';
import { BUS, type Bus, IiiFunction, type InvocationContext } from '#libs/iii';
import { REFRESH_REQUEST, REFRESH_RESPONSE, STREAM_REQUEST, STREAM_RESPONSE } from '../shared/contract.js';
import { VendorProvider } from '../shared/provider.js';
import { ANTHROPIC } from './vendor.js';

/** The provider of Anthropic's models; the runtime calls `register` once its functions are on the bus. */
@Injectable()
export class AnthropicProvider extends VendorProvider {
  constructor(@Inject(BUS) bus: Bus) {
    super(bus, ANTHROPIC);
  }
}

@Controller()
class AnthropicFunctions {
  constructor(@Inject(AnthropicProvider) private readonly provider: AnthropicProvider) {}

  @IiiFunction({
    id: 'provider::anthropic::stream',
    description: 'Streams one answer of an Anthropic model into a channel, as frames.',
    request: STREAM_REQUEST,
    response: STREAM_RESPONSE,
    metadata: { internal: true },
  })
  stream(@Payload() request: ProviderStreamRequest, @Ctx() context: InvocationContext): Promise<{ ok: boolean }> {
    return this.provider.stream(request, context);
  }

  @IiiFunction({
    id: 'provider::anthropic::refresh_models',
    description: 'Asks Anthropic which models there are and gives the list to the router.',
    request: REFRESH_REQUEST,
    response: REFRESH_RESPONSE,
    metadata: { internal: true },
  })
  refreshModels(): Promise<{ ok: boolean; count: number }> {
    return this.provider.refreshModels();
  }
}

/** Anthropic as a provider: `provider::anthropic::*`. */
@Module({ controllers: [AnthropicFunctions], providers: [AnthropicProvider], exports: [AnthropicProvider] })
export class AnthropicProviderModule {}
