import { type DynamicModule, Module } from '@nestjs/common';
import { COMPILE_GLOBS, type CompileGlobs, HookRegistry } from './registry.js';

/** The hook points. Needs `BUS`; `HookRegistry.publish` makes them known. */
@Module({})
export class HooksModule {
  static forRoot(compile: CompileGlobs): DynamicModule {
    return { module: HooksModule, providers: [HookRegistry, { provide: COMPILE_GLOBS, useValue: compile }], exports: [HookRegistry] };
  }
}
