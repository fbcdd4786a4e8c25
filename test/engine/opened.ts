import { expect, onTestFinished } from 'vitest';
import { type MessageItem, type StatusReport, textOf } from '#libs/contracts';
import { type EmbeddedRuntime, openOnEngine } from '#libs/local';
import type { OpenOnEngineOptions } from '../../libs/local/src/engine/open.js';
import { newDataDir, removeDataDir } from '../support/store.js';
import { EngineHost } from './engine-host.js';
import { ScriptedModel } from './scripted-model.js';

/** Generous: the machine may be busy. */
export const PATIENCE = { timeout: 20_000, interval: 20 };
export type Host = Awaited<ReturnType<typeof hostOf>>;

/** An engine with a model, which is gone after the test. */
export async function hostOf(options: { runsJobs?: boolean } = {}) {
  const engine = await EngineHost.open(options);
  onTestFinished(async () => await engine.close());
  const model = new ScriptedModel(engine.host.bus);
  await model.offer();
  const ask = <T>(function_id: string, payload: unknown): Promise<T> => engine.host.bus.trigger<T>({ function_id, payload });
  const transcript = async (session_id: string): Promise<MessageItem[]> =>
    (await ask<{ messages: MessageItem[] }>('session::messages', { session_id, limit: 500, include_custom: true })).messages;
  return {
    engine,
    model,
    ask,
    transcript,
    texts: async (session_id: string): Promise<string[]> =>
      (await transcript(session_id)).map(({ message }) => textOf(message?.content ?? [])),
    ended: async (session_id: string): Promise<StatusReport> => {
      const status = (): Promise<StatusReport> => ask<StatusReport>('harness::status', { session_id });
      await expect.poll(async () => (await status()).status, PATIENCE).toMatch(/completed|failed|cancelled/);
      return await status();
    },
  };
}

/** A worker of the engine in this process, with what it logs; it is closed after the test. */
export async function workerOf(
  { engine }: Host,
  options: Partial<OpenOnEngineOptions> = {},
): Promise<EmbeddedRuntime & { said: string[] }> {
  const dataDir = newDataDir();
  const said: string[] = [];
  const log = (level: string, message: string, context: object): void => void said.push(`${level} ${message} ${JSON.stringify(context)}`);
  const runtime = await openOnEngine({ dataDir, role: 'worker', engineUrl: engine.url, log, ...options });
  onTestFinished(async () => {
    await runtime.close(1_000);
    removeDataDir(dataDir);
  });
  return Object.assign(runtime, { said });
}
