import { Controller, Inject, Injectable, Module, type Type } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import type { ProviderStreamRequest } from '#libs/contracts';
import { BUS, type Bus, IiiFunction, type InvocationContext } from '#libs/iii';
import { REFRESH_REQUEST, REFRESH_RESPONSE, STREAM_REQUEST, STREAM_RESPONSE } from './contract.js';
import { type Vendor, VendorProvider } from './provider.js';

/** A vendor as a worker: its functions, and the provider that the runtime registers with the router once they are on the bus. */
export interface VendorWorker {
  Provider: new (bus: Bus) => VendorProvider;
  ProviderModule: Type;
}

/** Makes the worker `provider::<id>::*` of a vendor. `words` describe its two functions. */
export function vendorWorker(vendor: Vendor, words: { stream: string; refresh_models: string }): VendorWorker {
  @Injectable()
  class Provider extends VendorProvider {
    constructor(@Inject(BUS) bus: Bus) {
      super(bus, vendor);
    }
  }

  @Controller()
  class Functions {
    constructor(@Inject(Provider) private readonly provider: VendorProvider) {}

    @IiiFunction({
      id: `provider::${vendor.id}::stream`,
      description: words.stream,
      request: STREAM_REQUEST,
      response: STREAM_RESPONSE,
      metadata: { internal: true },
    })
    stream(@Payload() request: ProviderStreamRequest, @Ctx() context: InvocationContext): Promise<{ ok: boolean }> {
      return this.provider.stream(request, context);
    }

    @IiiFunction({
      id: `provider::${vendor.id}::refresh_models`,
      description: words.refresh_models,
      request: REFRESH_REQUEST,
      response: REFRESH_RESPONSE,
      metadata: { internal: true },
    })
    refreshModels(): Promise<{ ok: boolean; count: number }> {
      return this.provider.refreshModels();
    }
  }

  @Module({ controllers: [Functions], providers: [Provider], exports: [Provider] })
  class ProviderModule {}

  return { Provider, ProviderModule };
}
