import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { INestMicroservice, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { JsonValue } from '#libs/contracts';
import { BUS, BusErrorFilter, IiiTransport, type LocalBus, LocalEngine } from '#libs/iii';
import { GivenModule, partsOf } from '../../libs/local/src/runtime/given.module.js';
import { closeStore, openStore, type Store } from '../../libs/local/src/runtime/store.js';

/** A store over real files with some modules on an engine of its own, as one process would have it. */
export interface TestStore {
  dataDir: string;
  store: Store;
  engine: LocalEngine;
  bus: LocalBus;
  app: INestMicroservice;
  /** What was reported as going wrong in the background. */
  reports: string[];
  call<T>(function_id: string, payload: unknown): Promise<T>;
  /** Closes all parts; the folder stays. */
  close(): Promise<void>;
}

/** Makes an empty data folder. */
export const newDataDir = (): string => mkdtempSync(join(tmpdir(), 'harness-test-'));
export const removeDataDir = (dataDir: string): void => rmSync(dataDir, { recursive: true, force: true });

/** Opens the store of `dataDir` with `modules` behind the real transport. Several at once stand for several processes. */
export async function openTestStore(
  modules: Type<unknown>[],
  dataDir: string = newDataDir(),
  { redisUrl }: { redisUrl?: string | undefined } = {},
): Promise<TestStore> {
  const reports: string[] = [];
  const report = (message: string, context: { [key: string]: unknown }): void => void reports.push(`${message} ${JSON.stringify(context)}`);
  const store = await openStore({ dataDir, durability: 'process', concurrency: () => 4, redisUrl, report });
  const engine = new LocalEngine({ report });
  const bus = engine.connect({ name: 'test' });
  const module = await Test.createTestingModule({ imports: [GivenModule.of([[BUS, bus], ...partsOf(store)]), ...modules] }).compile();
  const app = module.createNestMicroservice({ strategy: new IiiTransport(bus) });
  app.useLogger(false);
  app.useGlobalFilters(new BusErrorFilter());
  await app.listen();
  return {
    dataDir,
    store,
    engine,
    bus,
    app,
    reports,
    call: (function_id, payload) => bus.trigger({ function_id, payload }),
    async close() {
      await app.close();
      await closeStore(store);
    },
  };
}

/** A user message of one text. */
export const userMessage = (text: string): { role: 'user'; content: [{ type: 'text'; text: string }]; timestamp: number } => ({
  role: 'user',
  content: [{ type: 'text', text }],
  timestamp: 1,
});

/** Registers a function that keeps what it gets; `until(n)` settles when it has been called n times. */
export function recorder(
  bus: LocalBus,
  id: string,
  answer: (payload: JsonValue, nth: number) => unknown = () => null,
): { got: JsonValue[]; until(count: number): Promise<void> } {
  const got: JsonValue[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  bus.registerFunction({ id }, (payload) => {
    got.push(payload as JsonValue);
    for (const one of waiting) if (got.length >= one.count) one.resolve();
    return answer(payload as JsonValue, got.length);
  });
  return { got, until: (count) => (got.length >= count ? Promise.resolve() : new Promise((resolve) => waiting.push({ count, resolve }))) };
}
