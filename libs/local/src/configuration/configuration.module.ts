import { type DynamicModule, Inject, Logger, Module, type OnModuleInit } from '@nestjs/common';
import { SETTINGS, type SettingsSource } from '#libs/turn';
import { CONFINE_SETTINGS, type ConfineSettings } from '../confine/settings.js';
import { ROUTER_SETTINGS, type RouterSettingsSource } from '../router/settings.js';
import { describeFault } from './fault.js';
import { type Configuration, loadConfiguration } from './load.js';

/** Injection token of the `Configuration` that was read at the start. */
export const CONFIGURATION = Symbol('harness:configuration');

/** Where the configuration comes from: a folder to read, or one that has been read already. */
export type ConfigurationSource = { configDir: string } | { configuration: Configuration };

/**
 * Gives `SETTINGS`, `ROUTER_SETTINGS` and `CONFINE_SETTINGS` to every module of the application. The files are read once,
 * when the application is made, which fails with `configuration/invalid` when one of them is not valid.
 */
@Module({})
export class ConfigurationModule implements OnModuleInit {
  private readonly logger = new Logger('configuration');

  constructor(@Inject(CONFIGURATION) private readonly configuration: Configuration) {}

  onModuleInit(): void {
    for (const fault of this.configuration.faults) this.logger.warn(describeFault(fault));
  }

  static forRoot(source: ConfigurationSource): DynamicModule {
    return {
      module: ConfigurationModule,
      global: true,
      providers: [
        {
          provide: CONFIGURATION,
          useFactory: () => ('configuration' in source ? source.configuration : loadConfiguration(source.configDir)),
        },
        {
          provide: SETTINGS,
          inject: [CONFIGURATION],
          useFactory: ({ harness }: Configuration): SettingsSource => ({ current: () => harness }),
        },
        {
          provide: ROUTER_SETTINGS,
          inject: [CONFIGURATION],
          useFactory: ({ router }: Configuration): RouterSettingsSource => ({ current: () => router }),
        },
        {
          provide: CONFINE_SETTINGS,
          inject: [CONFIGURATION],
          useFactory: ({ confine }: Configuration): ConfineSettings => ({ current: () => confine }),
        },
      ],
      exports: [CONFIGURATION, SETTINGS, ROUTER_SETTINGS, CONFINE_SETTINGS],
    };
  }
}
