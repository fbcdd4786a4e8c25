import { Module } from '@nestjs/common';
import { StateSnapshots } from './snapshots.js';
import { StateController } from './state.controller.js';
import { StateEvents } from './state-events.js';
import { StateStore } from './state-store.js';

/** Registers `state::*` and the trigger type `state`. Needs `BUS`, `CLOCK`, `DATABASE` and `SqliteWriter` from a global module. */
@Module({ controllers: [StateController], providers: [StateEvents, StateSnapshots, StateStore], exports: [StateStore] })
export class StateModule {}
