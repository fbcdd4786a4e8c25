import { Module } from '@nestjs/common';
import { WebController } from './web.controller.js';
import { WebService } from './web.service.js';

/** Registers `web::fetch`. Limits come from `CONFINE_SETTINGS` when some module provides it globally. */
@Module({ controllers: [WebController], providers: [WebService] })
export class WebModule {}
