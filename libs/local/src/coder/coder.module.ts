import { Module } from '@nestjs/common';
import { CoderController } from './coder.controller.js';

/** Registers `coder::*`. Limits come from `CONFINE_SETTINGS` when some module provides it globally. */
@Module({ controllers: [CoderController] })
export class CoderModule {}
