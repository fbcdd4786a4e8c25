import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { harnessFunctions, type MessageItem, type StatusReport, textOf } from '#libs/contracts';
import { connectSdk, type SdkBus } from '#libs/iii';
import { cli, folder } from '../cli/harness-cli.js';
import { Program } from '../gateway/programs.js';
import { freePort } from '../support/free-port.js';
import { campaign } from './campaign.js';
import { ENGINE_BIN, EngineServer } from './engine-server.js';
import { ScriptedModel } from './scripted-model.js';
import { ServedWorker } from './served-worker.js';

/** Generous: engines, workers and programs are processes, and the machine may be busy. */
const PATIENCE = { timeout: 30_000, interval: 50 };
const why = ENGINE_BIN === undefined ? ' (skipped: no engine binary)' : '';

/** A worker of the engine, which is gone after the test. */
function workerOf(engine: EngineServer, env: { [name: string]: string } = {}, dataDir = folder()): ServedWorker {
  const worker = new ServedWorker(dataDir, { III_URL: engine.url, HARNESS_SIBLINGS: 'all', HARNESS_HTTP_PORT: 'off', ...env });
  onTestFinished(async () => {
    await worker.end('SIGKILL');
  });
  return worker;
}

describe.skipIf(ENGINE_BIN === undefined)(`a worker of a real iii engine${why}`, () => {
  let engine: EngineServer;
  let bus: SdkBus;
  let model: ScriptedModel;

  const ask = <T>(function_id: string, payload: unknown): Promise<T> => bus.trigger<T>({ function_id, payload, timeoutMs: 20_000 });
  const ended = async (session: string): Promise<StatusReport> => {
    await expect
      .poll(async () => (await ask<StatusReport>('harness::status', { session_id: session })).status, PATIENCE)
      .toMatch(/completed|failed|cancelled/);
    return await ask<StatusReport>('harness::status', { session_id: session });
  };
  const texts = async (session: string): Promise<string[]> => {
    const { messages } = await ask<{ messages: MessageItem[] }>('session::messages', { session_id: session, limit: 500 });
    return messages.map(({ message }) => textOf(message?.content ?? []));
  };

  beforeAll(async () => {
    engine = await EngineServer.open();
  }, 60_000);
  afterAll(async () => {
    await engine.dispose();
  });
  beforeEach(async () => {
    bus = await connectSdk(engine.url, { name: `test:${process.pid}`, log: () => undefined });
    model = new ScriptedModel(bus);
    const used = bus;
    onTestFinished(async () => await used.close());
  });

  it('registers the nine functions with the schemas of the contract', { timeout: 60_000 }, async () => {
    await workerOf(engine).up();
    for (const [id, contract] of Object.entries(harnessFunctions)) {
      const info = await ask<{ request_schema: unknown; response_schema: unknown; description: string }>('engine::functions::info', {
        function_id: id,
      });
      expect(info).toMatchObject({ request_schema: contract.request, response_schema: contract.response });
    }
  });

  it('completes a tool turn of the demo model that the command line sends', { timeout: 60_000 }, async () => {
    await workerOf(engine).up();
    const words = [
      'send',
      '--provider',
      'demo',
      '--allow',
      'coder::*',
      '--allow',
      'engine::functions::*',
      'read README.md',
      '--url',
      engine.url,
    ];
    const { code, stdout, stderr } = await cli(words);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toContain('is titled **harness**');
    expect(stderr).toMatch(/completed · 3 steps · 2 calls/);
  });

  it('passes the conformance run', { timeout: 120_000 }, async () => {
    await workerOf(engine).up();
    const { code, stdout } = await cli(['conformance', '--url', engine.url]);
    expect(stdout).toMatch(/ 0 failed, 0 skipped/);
    expect(code).toBe(0);
  });

  it('asks a hook of one program, and goes on when another one releases the call', { timeout: 60_000 }, async () => {
    await workerOf(engine).up();
    const target = await Program.start(engine.url, 'function');
    const hook = await Program.start(engine.url, 'hook', 'hold');
    await model.offer();
    model.plays(model.asks('far::run', { n: 1 }), model.says('done'));
    await ask('harness::send', model.send('s_held', 'call it', ['far::run']));
    expect(await hook.until('asked')).toBe('far::run');
    await expect
      .poll(async () => (await ask<StatusReport>('harness::status', { session_id: 's_held' })).status, PATIENCE)
      .toBe('awaiting_functions');
    expect(target.told.filter(({ event }) => event === 'called')).toEqual([]);
    const report = await ask<StatusReport>('harness::status', { session_id: 's_held' });
    const released = await ask('harness::function::resolve', {
      session_id: 's_held',
      turn_id: report.turn_id,
      function_call_id: 'fc_one',
      action: 'execute',
    });
    expect(released).toMatchObject({ resolved: true });
    expect(await target.until('called')).toMatchObject({ payload: { n: 1 }, metadata: { agent: { session_id: 's_held' } } });
    expect((await ended('s_held')).status).toBe('completed');
  });

  it('takes a change of its settings on the engine at once, and keeps the last good ones', { timeout: 60_000 }, async () => {
    const port = await freePort();
    await workerOf(engine, { HARNESS_HTTP_PORT: String(port) }).up();
    const { value } = await ask<{ value: { [name: string]: unknown } }>('configuration::get', { id: 'harness' });
    onTestFinished(async () => {
      await ask('configuration::set', { id: 'harness', value });
    });
    await ask('configuration::set', { id: 'harness', value: { ...value, default_max_turns: 1 } });
    await model.offer();
    model.plays(model.asks('engine::functions::list', {}), model.says('never asked for'));
    await ask('harness::send', model.send('s_limited', 'go on', ['engine::functions::list']));
    await ended('s_limited');
    expect((await texts('s_limited')).join('\n')).not.toContain('never asked for');

    // What the schema lets pass and the harness does not: an expression that no cron knows.
    await ask('configuration::set', { id: 'harness', value: { ...value, sweep_expression: 'now and then' } });
    const health = async (): Promise<string> => await (await fetch(`http://127.0.0.1:${port}/health/ready`)).text();
    await expect.poll(health, PATIENCE).toContain('sweep_expression');
  });

  it('refuses to be a second harness, and says which one is the first', { timeout: 60_000 }, async () => {
    const first = workerOf(engine);
    await first.up();
    const second = workerOf(engine);
    second.begin();
    await second.until(/waiting for the worker harness:.*, which has registered harness::\*, to leave/);
    await expect.poll(() => second.hasEnded, PATIENCE).toBe(true);
    expect(second.said).toMatch(/the engine has a harness already: the worker harness:[^ ]+ has registered/);
    // One that waits takes over when the first one is killed.
    second.begin();
    await second.until(/to leave/);
    await first.end('SIGKILL');
    await second.until(/"msg":"ready"/);
  });

  it('says what it waits for, and is ready once that is there', { timeout: 60_000 }, async () => {
    const worker = workerOf(engine, { HARNESS_SIBLINGS: '-router,-providers' });
    worker.begin();
    await worker.until(/waiting for router::chat; this worker can stand in: HARNESS_SIBLINGS=router/);
    bus.registerFunction({ id: 'router::chat' }, () => ({ ok: true }));
    await worker.until(/"msg":"ready"/);
  });

  it('refuses to start where the engine takes no steps, and says what to do', { timeout: 60_000 }, async () => {
    const worker = workerOf(engine, { HARNESS_SIBLINGS: '-queue' });
    worker.begin();
    await expect.poll(() => worker.hasEnded, PATIENCE).toBe(true);
    expect(worker.said).toMatch(/takes no steps into the queue harness-turn .*HARNESS_SIBLINGS=queue \(harness\/no_queue\)/);
  });

  it('ends within its grace time during a long stream, and the turn resumes in the next process', { timeout: 60_000 }, async () => {
    const dataDir = folder();
    const worker = workerOf(engine, {}, dataDir);
    await worker.up();
    await model.offer();
    model.plays(model.streams('half an answer'), model.says('the whole answer'));
    await ask('harness::send', model.send('s_drained', 'tell me'));
    await expect.poll(async () => (await texts('s_drained')).join('\n'), PATIENCE).toContain('half an answer');
    const startedAt = Date.now();
    expect(await worker.end('SIGTERM')).toBe(0);
    expect(Date.now() - startedAt).toBeLessThan(20_000);
    await workerOf(engine, {}, dataDir).up();
    expect((await ended('s_drained')).status).toBe('completed');
    expect((await texts('s_drained')).slice(1)).toEqual(['the whole answer']);
  });

  it.each([
    { store: 'sqlite', sessionsElsewhere: false },
    { store: 'sqlite', sessionsElsewhere: true },
    { store: 'engine', sessionsElsewhere: false },
  ] as const)(
    'loses nothing and repeats nothing when it and its engine are killed (store: $store, sessions elsewhere: $sessionsElsewhere)',
    { timeout: 180_000 },
    async (how) => {
      const report = await campaign({ ...how, kills: 4, engineKills: 3, seed: 5, say: () => undefined });
      expect(report.violations).toEqual([]);
      expect(report.effects).toBeGreaterThan(4);
    },
  );

  // Last, since it takes the engine of the others down.
  it('is red within seconds when the engine is gone, and green when it is back with its hooks', { timeout: 90_000 }, async () => {
    const port = await freePort();
    await workerOf(engine, { HARNESS_HTTP_PORT: String(port) }).up();
    const hook = await Program.start(engine.url, 'hook', 'continue');
    await Program.start(engine.url, 'function');
    await model.offer();
    const ready = async (): Promise<number> => (await fetch(`http://127.0.0.1:${port}/health/ready`)).status;
    expect(await ready()).toBe(200);
    await engine.kill();
    const killedAt = Date.now();
    await expect.poll(ready, { timeout: 5_000, interval: 50 }).toBe(503);
    expect(Date.now() - killedAt).toBeLessThan(5_000);
    await engine.up();
    await expect.poll(ready, PATIENCE).toBe(200);
    model.plays(model.asks('far::run', {}), model.says('done'));
    await expect
      .poll(
        async () =>
          await ask('harness::send', model.send('s_back', 'call it', ['far::run'])).then(
            () => true,
            () => false,
          ),
        PATIENCE,
      )
      .toBe(true);
    expect((await ended('s_back')).status).toBe('completed');
    expect(hook.told.filter(({ event }) => event === 'asked')).toHaveLength(1);
  });
});
