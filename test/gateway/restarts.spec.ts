import { beforeAll, expect, it } from 'vitest';
import { type SendResponse, type StatusReport, textOf } from '#libs/contracts';
import { ensureBuilt, folder, here, type Running, start } from '../cli/harness-cli.js';
import { freePort } from '../support/free-port.js';
import { Program } from './programs.js';
import { connect } from './remote.js';

beforeAll(ensureBuilt, 180_000);

const serveAt = async (dataDir: string, port: number): Promise<Running> => {
  const worker = start(['serve', '--data-dir', dataDir], { env: { HARNESS_GATEWAY_PORT: String(port), HARNESS_HTTP_PORT: '0' } });
  await worker.until('stdout', /is ready/);
  return worker;
};
const kill = async (worker: Running): Promise<void> => {
  worker.signal('SIGKILL');
  await worker.result;
};

it('C07 a consumer hears how a turn ended that the next worker took over before the consumer was back', async () => {
  const dataDir = folder();
  const port = await freePort();
  const worker = await serveAt(dataDir, port);
  const client = connect(`ws://127.0.0.1:${port}`, { reconnectionConfig: { initialDelayMs: 3_000, maxDelayMs: 3_000, jitterFactor: 0 } });
  const ends: string[] = [];
  client.registerFunction('consumer::ended', async ({ turn_id, status }: { turn_id: string; status: string }) => {
    ends.push(`${turn_id} ${status}`);
    return null;
  });
  client.registerTrigger({ type: 'harness::turn-completed', function_id: 'consumer::ended', config: {} });
  const message = '/call shell::exec {"command":"sleep","args":["30"]}';
  const payload = { message, model: 'demo', provider: 'demo', options: { functions: { allow: ['shell::*'] } } };
  const { session_id, turn_id } = await client.trigger<unknown, SendResponse>({ function_id: 'harness::send', payload });
  await expect
    .poll(async () => (await here(['show', session_id, '--data-dir', dataDir])).stdout, { timeout: 20_000 })
    .toContain('shell::exec');
  await kill(worker);
  const next = await serveAt(dataDir, port);
  await next.until('stderr', /turn completed/);
  await expect.poll(() => ends, { timeout: 30_000 }).toContain(`${turn_id} completed`);
  await kill(next);
}, 120_000);

it('C07 the worker is killed and started again: programs come back by themselves, and a guard that does not denies', async () => {
  const dataDir = folder();
  const port = await freePort();
  const url = `ws://127.0.0.1:${port}`;
  const serve = (): Promise<Running> => serveAt(dataDir, port);
  let worker = await serve();
  const hook = await Program.start(url, 'hook', 'deny');
  const target = await Program.start(url, 'function');
  const client = connect(url);
  /** Has the demo model call `far::run`; gives the result. */
  const turn = async (): Promise<string> => {
    const options = { functions: { allow: ['far::*'] } };
    const payload = { message: '/call far::run {}', model: 'demo-1', provider: 'demo', options };
    const { session_id } = await client.trigger<unknown, SendResponse>({ function_id: 'harness::send', payload });
    for (;;) {
      const status = await client.trigger<unknown, StatusReport>({ function_id: 'harness::status', payload: { session_id } });
      if (['completed', 'failed', 'cancelled'].includes(status.status)) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const { messages } = await client.trigger<unknown, { messages: { message?: { role: string; content: never[] } }[] }>({
      function_id: 'session::messages',
      payload: { session_id },
    });
    return messages.flatMap(({ message }) => (message?.role === 'function_result' ? [textOf(message.content)] : [])).join();
  };

  expect(await turn()).toContain('the program says no');
  await kill(worker);
  worker = await serve();
  expect(await turn()).toContain('the program says no');
  expect(hook.told.filter(({ event }) => event === 'asked')).toHaveLength(2);

  await hook.kill();
  await kill(worker);
  worker = await serve();
  const denial = await turn();
  expect(denial).toMatch(/far::hook.*program-hook is away/);
  expect(target.told.some(({ event }) => event === 'called')).toBe(false);
  const listed = await here(['hooks', '--data-dir', dataDir]);
  const id = /hooks remove (\S+?)\)?[,)]/.exec(denial)?.[1] ?? '?';
  expect(listed.stdout).toMatch(new RegExp(`${id} +pre-trigger +far::hook +program-hook +away`));
  expect(await here(['hooks', 'remove', id, '--data-dir', dataDir])).toMatchObject({ code: 0, stdout: `removed ${id}\n` });
  expect(await here(['hooks', 'remove', id, '--data-dir', dataDir])).toMatchObject({ code: 2 });
  expect(await turn()).toContain('"far":true');
  await kill(worker);
}, 120_000);

it('C07 a turn that the next worker takes over waits for its provider, which is not back yet', async () => {
  const dataDir = folder();
  const port = await freePort();
  const worker = await serveAt(dataDir, port);
  const slow = { initialDelayMs: 3_000, maxDelayMs: 3_000, jitterFactor: 0 };
  const provider = connect(`ws://127.0.0.1:${port}`, { workerName: 'provider', reconnectionConfig: slow });
  let asked = 0;
  provider.registerFunction(
    'provider::late::stream',
    async ({ writer_ref }: { writer_ref: { sendMessage(text: string): void; close(): void } }) => {
      asked += 1;
      if (asked === 1) return await new Promise(() => undefined); // until the worker is killed
      const base = { role: 'assistant', model: 'late-1', provider: 'late', stop_reason: 'end', timestamp: 1 };
      writer_ref.sendMessage(JSON.stringify({ type: 'done', message: { ...base, content: [{ type: 'text', text: 'late, but there' }] } }));
      writer_ref.close();
      return { ok: true };
    },
  );
  provider.registerFunction('late::announce', async () => {
    const models = [{ id: 'late-1', provider: 'late', context_window: 100_000, max_output_tokens: 8_000 }];
    await provider.trigger({ function_id: 'router::provider::register', payload: { id: 'late', models } });
    return null;
  });
  provider.registerTrigger({ type: 'router::ready', function_id: 'late::announce', config: {} });
  await expect.poll(async () => (await here(['models', '--data-dir', dataDir])).stdout, { timeout: 20_000 }).toContain('late-1');
  const { session_id } = await provider.trigger<unknown, SendResponse>({
    function_id: 'harness::send',
    payload: { message: 'hello', model: 'late-1', provider: 'late' },
  });
  await expect.poll(() => asked, { timeout: 20_000 }).toBe(1);
  await kill(worker);
  const next = await serveAt(dataDir, port);
  await next.until('stderr', /turn (completed|failed)/);
  expect((await here(['show', session_id, '--data-dir', dataDir])).stdout).toContain('late, but there');
  await kill(next);
}, 120_000);
