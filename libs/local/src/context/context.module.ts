import { Module } from '@nestjs/common';
import { StateStore } from '../state/index.js';
import { ContextAssembler } from './assembler.js';
import { Compactor } from './compactor.js';
import { ContextController } from './context.controller.js';
import { CompactionLease } from './lease.js';

/** Registers `context::*`. Needs `BUS`, `CLOCK`, `DATABASE`, `SqliteWriter` and `ProcessRegistry` from a global module. */
@Module({ controllers: [ContextController], providers: [ContextAssembler, Compactor, CompactionLease, StateStore] })
export class ContextModule {}
