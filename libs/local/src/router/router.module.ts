import { Module } from '@nestjs/common';
import { RouterChatController } from './chat.controller.js';
import { ChatService } from './chat.js';
import { RouterEvents } from './events.js';
import { RouterModelsController } from './models.controller.js';
import { RouterProvidersController } from './providers.controller.js';
import { ProviderRegistry } from './providers.js';

/**
 * The router (`router::*`): between those who want a completion and the providers that stream one. Needs `BUS`; takes
 * `ROUTER_SETTINGS`, `ROUTER_ENV` and `ROUTER_TIMING` from a global module when they are bound.
 */
@Module({
  controllers: [RouterChatController, RouterModelsController, RouterProvidersController],
  providers: [RouterEvents, ProviderRegistry, ChatService],
  exports: [RouterEvents, ProviderRegistry, ChatService],
})
export class RouterModule {}
