import { readFileSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DynamicModule, Global, type INestApplicationContext, Module, type Provider, type Type } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import type { MicroserviceOptions } from '@nestjs/microservices';
import { BUS, BusErrorFilter, IiiTransport, type LocalBus, LocalEngine, type TriggerRequest } from '#libs/iii';
import { CONFINE_SETTINGS, type ConfineValues, confineDefaults } from '../settings.js';

@Global()
@Module({})
class TestSettingsModule {
  static with(providers: Provider[], exported: (symbol | Type)[]): DynamicModule {
    return { module: TestSettingsModule, providers, exports: exported };
  }
}

/** A module on a local engine of its own, below a fresh temporary root. */
export interface TestApp {
  readonly root: string;
  /** Change these to change the limits of the next call. */
  readonly values: ConfineValues;
  readonly bus: LocalBus;
  readonly app: INestApplicationContext;
  call<T = never>(function_id: string, payload: unknown, options?: Partial<TriggerRequest>): Promise<T>;
  close(): Promise<void>;
}

/** Starts `module` as the harness does. */
export async function startApp(module: Type, extra: { providers?: Provider[]; tokens?: (symbol | Type)[] } = {}): Promise<TestApp> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'confine-')));
  const values: ConfineValues = { ...confineDefaults, root };
  const engine = new LocalEngine();
  const bus = engine.connect({ name: 'test' });
  const settings = TestSettingsModule.with(
    [
      { provide: CONFINE_SETTINGS, useValue: { current: () => values } },
      { provide: BUS, useValue: bus },
      { provide: APP_FILTER, useClass: BusErrorFilter },
      ...(extra.providers ?? []),
    ],
    [CONFINE_SETTINGS, BUS, ...(extra.tokens ?? [])],
  );
  @Module({ imports: [settings, module] })
  class RootModule {}
  const app = await NestFactory.createMicroservice<MicroserviceOptions>(RootModule, {
    strategy: new IiiTransport(bus),
    logger: false,
    abortOnError: false,
  });
  await app.listen();
  return {
    root,
    values,
    bus,
    app,
    call: <T>(function_id: string, payload: unknown, options: Partial<TriggerRequest> = {}) =>
      bus.trigger<T>({ function_id, payload, ...options }),
    close: async () => {
      await app.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** The message of what a promise rejects with. */
export async function failure(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return error instanceof Error ? error.message : JSON.stringify(error);
  }
  throw new Error('it did not fail');
}

/** CPU time of this thread in ms, so that other programs on the machine do not count; wall time where it cannot be had. */
function threadTime(): number {
  if (process.platform !== 'linux') return performance.now();
  return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e6;
}

/** Runs `work` and tells the longest time, in ms, that the event loop was kept busy at one stretch meanwhile. */
export async function longestBlock(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = threadTime();
  const look = (): void => {
    const now = threadTime();
    longest = Math.max(longest, now - last);
    last = now;
  };
  let running = true;
  const turn = (): void => {
    look();
    if (running) setTimeout(turn, 1);
  };
  turn();
  try {
    await work();
  } finally {
    running = false;
  }
  look();
  return longest;
}
