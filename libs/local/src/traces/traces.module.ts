import { Module } from '@nestjs/common';
import { TracesController } from './traces.controller.js';

/** Serves the traces of turns. Needs `JOURNAL`, `CLOCK`, `SpanTable` and `SpanRecorder` from global modules. */
@Module({ controllers: [TracesController] })
export class TracesModule {}
