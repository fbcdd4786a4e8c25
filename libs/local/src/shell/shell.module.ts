import { Module } from '@nestjs/common';
import { ShellController } from './shell.controller.js';
import { ShellService } from './shell.service.js';

/** Registers `shell::exec`. Limits come from `CONFINE_SETTINGS` when some module provides it globally. */
@Module({ controllers: [ShellController], providers: [ShellService] })
export class ShellModule {}
