import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { Output } from '../render/output.js';
import { styleOf } from '../render/style.js';
import { type WorkerLog, workerLog } from './worker-log.js';

const KEY = 'q7Zt-91kfMvB_22xLpW0'; // looks like no vendor's key, so that only its value can give it away
const ENV = {
  VENDOR_API_KEY: KEY,
  HARNESS_GATEWAY_TOKEN: 'tok-gateway-4711',
  REDIS_URL: 'redis://user:p%40ssw0rd!@localhost:6379',
  OTEL_EXPORTER_OTLP_HEADERS: 'x-collector=collector%20key,other=plain-value',
  GOOGLE_APPLICATION_CREDENTIALS: '/home/somebody/credentials.json',
};

function open(tty = false, debug = false): WorkerLog & { text(): string; lines(): { [key: string]: unknown }[] } {
  const stream = Object.assign(new PassThrough(), { isTTY: tty });
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const log = workerLog(new Output(stream), styleOf(false), ENV, debug);
  return {
    ...log,
    text: () => text,
    lines: () =>
      text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { [key: string]: unknown }),
  };
}
const unsafe = /q7Zt|fMvB_22x|4711|p@ssw0rd|p%40ssw0rd|collector key|collector%20key|plain-value|file-key-123|base64/;

it('has no secret of the environment or the configuration in it, wherever one stands', () => {
  const { log, hide, text, lines } = open();
  hide(() => ['file-key-123']);
  const cause = new Error(`the vendor says: Incorrect API key provided: ${KEY}`);
  const wrapped = new Error('the request failed', { cause: new AggregateError([cause, new Error('also tok-gateway-4711')]) });
  log('warn', `echo ${KEY} and ${KEY.slice(0, 12)}…`, {
    error: wrapped,
    nested: { list: [{ [`key ${KEY}`]: `redis://user:p%40ssw0rd!@localhost and p@ssw0rd!` }] },
    file: 'file-key-123',
    json: JSON.stringify({ authorization: `Bearer ${KEY}` }),
    encoded: Buffer.from(KEY).toString('base64'),
    headers: 'collector key, collector%20key, plain-value',
    url: new URL(`https://host/?key=${KEY}`),
  });
  expect(text()).not.toMatch(unsafe);
  expect(text()).not.toContain(Buffer.from(KEY).toString('base64').slice(0, 12));
  const [line] = lines();
  expect(line).toMatchObject({ level: 'warn', error: { message: 'the request failed', cause: { cause: [{}, {}] } } });
  expect(JSON.stringify(line)).toContain('the vendor says: Incorrect API key provided: [');
});

it('keeps what is no secret: ids, paths and the shape of a context', () => {
  const { log, lines } = open();
  const ids = { session_id: 's_1', turn_id: 't_0af7651916cd43dd8448eb211c80319c', trace_id: '0af7651916cd43dd8448eb211c80319c' };
  log('info', 'turn completed', { ...ids, steps: 2, ok: true, none: null, data_dir: '/home/somebody/data', error: new Error('plain') });
  log('debug', 'not shown', {});
  expect(lines()).toEqual([
    {
      level: 'info',
      time: expect.any(String) as string,
      msg: 'turn completed',
      ...ids,
      steps: 2,
      ok: true,
      none: null,
      data_dir: '/home/somebody/data',
      error: 'plain',
    },
  ]);
});

it('is short and readable in a terminal', () => {
  const { log, text } = open(true, true);
  log('debug', `a ${KEY}`, { session_id: 's_1', circular: undefined });
  expect(text()).toMatch(/^\d\d:\d\d:\d\d debug a \[\w+\] session_id=s_1\n$/);
});

it('takes a context that refers to itself', () => {
  const { log, lines } = open();
  const context: { [key: string]: unknown } = { name: 'x' };
  context['self'] = context;
  log('error', 'odd', context);
  expect(lines()[0]).toMatchObject({ name: 'x', self: { name: 'x' } });
});
