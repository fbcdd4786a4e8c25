import { Module } from '@nestjs/common';
import { DemoController } from './demo.controller.js';
import { DemoProvider } from './demo.provider.js';

/** The demo provider. Needs `BUS`; `DemoProvider.register` makes it known to the router. */
@Module({ controllers: [DemoController], providers: [DemoProvider], exports: [DemoProvider] })
export class DemoProviderModule {}
