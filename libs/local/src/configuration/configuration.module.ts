import { dirname, resolve } from 'node:path';
import { type DynamicModule, Inject, Logger, Module, type OnModuleInit } from '@nestjs/common';
import { SETTINGS, type SettingsSource } from '#libs/turn';
import { APPROVAL_DEFAULTS, type ApprovalDefaultsSource } from '../approval/settings.js';
import { CONFINE_SETTINGS, type ConfineSettings } from '../confine/settings.js';
import { ROUTER_SETTINGS, type RouterSettingsSource } from '../router/settings.js';
import { ConfigurationController } from './configuration.controller.js';
import { ConfigurationEvents } from './configuration.events.js';
import { ConfigurationStore } from './configuration.store.js';
import { describeFault } from './fault.js';
import { LiveConfiguration } from './live.js';

/** Where the configuration comes from: a folder to read, or one that has been read already. */
export type ConfigurationSource = { configDir: string } | { configuration: LiveConfiguration };

/**
 * Gives `SETTINGS`, `ROUTER_SETTINGS`, `CONFINE_SETTINGS` and `APPROVAL_DEFAULTS` to every module of the application: always the values in force.
 * The files are read when the application is made, which fails with `configuration/invalid` when one of them is not valid.
 */
@Module({})
export class ConfigurationModule implements OnModuleInit {
  private readonly logger = new Logger('configuration');

  constructor(@Inject(LiveConfiguration) private readonly configuration: LiveConfiguration) {}

  onModuleInit(): void {
    for (const fault of this.configuration.faults) this.logger.warn(describeFault(fault));
  }

  static forRoot(source: ConfigurationSource): DynamicModule {
    return {
      module: ConfigurationModule,
      global: true,
      providers: [
        {
          provide: LiveConfiguration,
          useFactory: () => ('configuration' in source ? source.configuration : new LiveConfiguration(source.configDir)),
        },
        {
          provide: SETTINGS,
          inject: [LiveConfiguration],
          useFactory: (live: LiveConfiguration): SettingsSource => ({ current: () => live.current.harness, reload: () => live.reload() }),
        },
        {
          provide: ROUTER_SETTINGS,
          inject: [LiveConfiguration],
          useFactory: (live: LiveConfiguration): RouterSettingsSource => ({ current: () => live.current.router }),
        },
        {
          provide: CONFINE_SETTINGS,
          inject: [LiveConfiguration],
          useFactory: (live: LiveConfiguration): ConfineSettings => ({
            current: () => ({
              ...live.current.confine,
              closed_folders: [dirname(resolve(live.dir))], // the data folder
              secrets: live.secrets,
            }),
          }),
        },
        {
          provide: APPROVAL_DEFAULTS,
          inject: [LiveConfiguration],
          useFactory: (live: LiveConfiguration): ApprovalDefaultsSource => ({ current: () => live.current.approval }),
        },
      ],
      exports: [LiveConfiguration, SETTINGS, ROUTER_SETTINGS, CONFINE_SETTINGS, APPROVAL_DEFAULTS],
    };
  }
}

/** The configuration on the bus: `configuration::*` and its trigger type. Needs `BUS` and `ConfigurationModule`. */
@Module({
  controllers: [ConfigurationController],
  providers: [ConfigurationStore, ConfigurationEvents],
})
export class ConfigurationBusModule {}
