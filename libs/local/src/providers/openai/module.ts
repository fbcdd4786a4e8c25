import { Controller, Inject, Injectable, Module } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import type { ProviderStreamRequest } from '#libs/contracts';
import { BUS, type Bus, IiiFunction, type InvocationContext } from '#libs/iii';
import { REFRESH_REQUEST, REFRESH_RESPONSE, STREAM_REQUEST, STREAM_RESPONSE } from '../shared/contract.js';
import { VendorProvider } from '../shared/provider.js';
import { OPENAI } from './vendor.js';

/** The provider of OpenAI and of servers that speak its format; the runtime calls `register` once its functions are on the bus. */
@Injectable()
export class OpenAiProvider extends VendorProvider {
  constructor(@Inject(BUS) bus: Bus) {
    super(bus, OPENAI);
  }
}

@Controller()
class OpenAiFunctions {
  constructor(@Inject(OpenAiProvider) private readonly provider: OpenAiProvider) {}

  @IiiFunction({
    id: 'provider::openai::stream',
    description: 'Streams one answer of an OpenAI model, or of a server that speaks its format, into a channel, as frames.',
    request: STREAM_REQUEST,
    response: STREAM_RESPONSE,
    metadata: { internal: true },
  })
  stream(@Payload() request: ProviderStreamRequest, @Ctx() context: InvocationContext): Promise<{ ok: boolean }> {
    return this.provider.stream(request, context);
  }

  @IiiFunction({
    id: 'provider::openai::refresh_models',
    description: 'Asks OpenAI, or the server at its address, which models there are and gives the list to the router.',
    request: REFRESH_REQUEST,
    response: REFRESH_RESPONSE,
    metadata: { internal: true },
  })
  refreshModels(): Promise<{ ok: boolean; count: number }> {
    return this.provider.refreshModels();
  }
}

/** OpenAI as a provider: `provider::openai::*`. */
@Module({ controllers: [OpenAiFunctions], providers: [OpenAiProvider], exports: [OpenAiProvider] })
export class OpenAiProviderModule {}
