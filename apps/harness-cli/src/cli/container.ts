import { Logger, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { CommandRunnerService } from 'nest-commander/src/command-runner.service.js';
import { Commander, CommanderOptions } from 'nest-commander/src/constants.js';
import { Cli } from './cli.js';
import type { CommandClass, Program } from './command.js';
import { configureProgram, ofNestCommander } from './program.js';

class CliModule {}

/** Parses `argv` (without node and script) and runs the command in a Nest container, which is closed on every path. Throws what fails. */
export async function runInContainer(commands: readonly CommandClass[], cli: Cli, version: string, argv: readonly string[]): Promise<void> {
  const { DiscoveryModule } = ofNestCommander<{ DiscoveryModule: Type }>('@golevelup/nestjs-discovery');
  const { Command } = ofNestCommander<{ Command: Type<Program> }>('commander');
  // The parts of nest-commander's own module, without the prompts that it loads and we don't use.
  const app = await NestFactory.createApplicationContext(
    {
      module: CliModule,
      imports: [DiscoveryModule],
      providers: [
        Logger,
        CommandRunnerService,
        { provide: Commander, useValue: new Command() },
        { provide: CommanderOptions, useValue: { serviceErrorHandler: rethrow } },
        { provide: Cli, useValue: cli },
        ...commands.map((type) => ({ provide: type, useFactory: (own: Cli) => new type(own), inject: [Cli] })),
      ],
    },
    { logger: false, abortOnError: false },
  );
  try {
    configureProgram(app.get<Program>(Commander), cli, version);
    await app.get(CommandRunnerService).run(['node', cli.name, ...argv]);
  } finally {
    await app.close();
  }
}

function rethrow(error: Error): never {
  throw error;
}
