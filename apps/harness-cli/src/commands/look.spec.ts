import { EventEmitter } from 'node:events';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { MessageItem, SessionMeta, StatusReport } from '#libs/contracts';
import { ended, FakeRuntime, run } from '../../test/fake.js';
import type { RuntimeRequest } from '../cli/open-runtime.js';

const NOW = 1_700_000_000_000;
const meta = (session_id: string, more: Partial<SessionMeta> = {}): SessionMeta => ({
  session_id,
  title: '',
  description: '',
  status: 'done',
  message_count: 4,
  created_at: NOW,
  updated_at: NOW - 5 * 60_000,
  ...more,
});
const report = (more: Partial<StatusReport> = {}): StatusReport => ({
  session_id: 's_1',
  turn_id: 't_1',
  status: 'running',
  step: 2,
  turn_count: 3,
  max_turns: 16,
  depth: 0,
  pending_function_calls: [],
  children: [],
  ...more,
});

function stored(turn: StatusReport | null, sessions: SessionMeta[] = [meta('s_1', { title: 'A title\u001b[2J' })]): FakeRuntime {
  const runtime = new FakeRuntime();
  runtime.functions['session::get'] = ({ session_id }: { session_id: string }) => {
    const found = sessions.find((session) => session.session_id === session_id);
    return found === undefined ? null : { meta: found };
  };
  runtime.functions['session::list'] = ({ limit, cursor }: { limit: number; cursor?: string }) => {
    const from = Number(cursor ?? 0);
    return {
      sessions: sessions.slice(from, from + limit),
      ...(from + limit < sessions.length ? { next_cursor: String(from + limit) } : {}),
    };
  };
  runtime.functions['harness::status'] = () => turn;
  runtime.owner = 'none';
  return runtime;
}
const now = () => NOW;

describe('status', () => {
  it('shows the turn and who runs it', async () => {
    const runtime = stored(
      report({ pending_function_calls: ['fc_1'], children: [{ function_call_id: 'c', session_id: 's_child', turn_id: 't' }] }),
    );
    runtime.owner = 'gone';
    const { code, stdout } = await run(['status', 's_1'], { runtime, now });
    expect(code).toBe(0);
    expect(runtime.opened?.role).toBe('reader');
    for (const text of ['A title␛[2J', 'running', '3 of 16', 'fc_1', 's_child', 'its process is gone', 'harness-cli serve', '5 min ago'])
      expect(stdout).toContain(text);
  });

  it('gives JSON, and exits with 2 for a session that is not there', async () => {
    expect(JSON.parse((await run(['status', 's_1', '--json'], { runtime: stored(report()), now })).stdout)).toMatchObject({
      session: { session_id: 's_1' },
      turn: { status: 'running' },
      owner: 'none',
    });
    const runtime = stored(null, [meta('s_review')]);
    const missing = await run(['status', 's_reveiw'], { runtime });
    expect(missing).toMatchObject({ code: 2, stdout: '' });
    expect(missing.stderr).toMatch(/no session s_reveiw in \/data; did you mean s_review\?/);
    expect(runtime.closes).toHaveLength(1);
  });

  it('watches until the turn ends, and exits as it does', async () => {
    for (const [status, code] of [
      ['completed', 0],
      ['failed', 1],
      ['cancelled', 130],
    ] as const) {
      let looks = 0;
      const runtime = stored(null);
      runtime.functions['harness::status'] = () => (++looks < 2 ? report() : report({ status, step: 3 }));
      const result = await run(['status', 's_1', '--watch'], { runtime, now });
      expect(result.code).toBe(code);
      expect(
        result.stdout
          .trimEnd()
          .split('\n')
          .map((line) => line.split(' · ')[0]),
      ).toEqual(['running', status]);
    }
  });

  it('stops watching at Ctrl-C', async () => {
    const signals = new EventEmitter();
    const runtime = stored(report());
    setTimeout(() => signals.emit('SIGINT'), 50);
    expect((await run(['status', 's_1', '--watch'], { runtime, signals, now })).code).toBe(130);
    expect(runtime.closes).toHaveLength(1);
  });
});

describe('stop', () => {
  it('stops the turn and waits for its end', async () => {
    const runtime = stored(null);
    let turn = report();
    runtime.functions['harness::status'] = () => turn;
    runtime.functions['harness::stop'] = () => {
      turn = report({ status: 'cancelled' });
      return { stopping: true };
    };
    expect(await run(['stop', 's_1'], { runtime })).toMatchObject({ code: 0, stdout: 'cancelled · after 3 model calls · session s_1\n' });
  });

  it('ends a turn whose process is gone by taking it over', async () => {
    const runtime = stored(null);
    runtime.owner = 'gone';
    runtime.functions['harness::status'] = () => (runtime.adopted.length > 0 ? report({ status: 'cancelled' }) : report());
    runtime.functions['harness::stop'] = () => ({ stopping: true });
    expect(await run(['stop', 's_1', '--json'], { runtime })).toMatchObject({ code: 0 });
    expect(runtime.adopted).toEqual(['s_1']);
  });

  it('leaves an ended turn as it is', async () => {
    const runtime = stored(report({ status: 'completed' }));
    expect((await run(['stop', 's_1'], { runtime })).stdout).toContain('had ended before');
    expect(runtime.calls.map((call) => call.function_id)).not.toContain('harness::stop');
  });
});

describe('sessions', () => {
  const many = Array.from({ length: 30 }, (_, index) =>
    meta(`s_${index}`, { title: index === 7 ? 'Review of the parser' : `Session ${index}` }),
  );

  it('lists the newest as a table, as many as asked for', async () => {
    const { stdout } = await run(['sessions', '-n', '3'], { runtime: stored(null, many), now });
    expect(stdout).toBe(
      [
        'SESSION  STATUS  MESSAGES  CHANGED    TITLE',
        's_0      done           4  5 min ago  Session 0',
        's_1      done           4  5 min ago  Session 1',
        's_2      done           4  5 min ago  Session 2',
        '',
      ].join('\n'),
    );
  });

  it('searches all pages', async () => {
    const { stdout } = await run(['sessions', '--search', 'parser REVIEW', '--json'], { runtime: stored(null, many) });
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as SessionMeta).session_id),
    ).toEqual(['s_7']);
  });

  it('fits into a narrow terminal', async () => {
    const wide = [meta(`s_${'0'.repeat(32)}`, { title: '日本語のとても長い題名がここにあります' })];
    for (const columns of [40, 50, 60, 80]) {
      const { stdout } = await run(['sessions'], { runtime: stored(null, wide), now, tty: true, columns, env: { NO_COLOR: '1' } });
      const { default: stringWidth } = await import('string-width');
      for (const line of stdout.split('\n')) expect(stringWidth(line)).toBeLessThanOrEqual(Math.max(columns, 42));
      expect(stdout).toContain('done');
    }
  });

  it('says what to do when there is none', async () => {
    expect(await run(['sessions'], { runtime: stored(null, []) })).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('harness-cli send "hello"') as string,
    });
  });
});

describe('show', () => {
  const item = (entry_id: string, message: unknown): MessageItem => ({ entry_id, message: message as MessageItem['message'] });
  const items: MessageItem[] = [
    item('e1', { role: 'user', content: [{ type: 'text', text: 'read it\u001b]0;x\u0007' }], timestamp: NOW }),
    item('e2', {
      role: 'assistant',
      model: 'm',
      provider: 'p',
      stop_reason: 'function_call',
      timestamp: NOW,
      usage: { input: 1500, output: 20 },
      content: [
        { type: 'thinking', text: 'hm' },
        { type: 'text', text: 'I read.' },
        { type: 'function_call', id: 'c', function_id: 'x::read', arguments: { path: 'a' } },
        { type: 'redacted_thinking', data: 'AAAA' },
      ],
    }),
    item('e3', {
      role: 'function_result',
      function_call_id: 'c',
      function_id: 'x::read',
      content: [{ type: 'text', text: Array.from({ length: 40 }, (_, n) => `line ${n}`).join('\n') }],
      details: null,
      is_error: false,
      timestamp: NOW,
    }),
    { entry_id: 'e4', custom: { custom_type: 'error', data: { message: 'the provider is down' } } },
  ];
  const withItems = (): FakeRuntime => {
    const runtime = stored(report({ status: 'failed' }));
    runtime.functions['session::messages'] = ({ cursor }: { cursor?: string }) =>
      cursor === undefined ? { messages: items.slice(0, 2), next_cursor: 'x' } : { messages: items.slice(2) };
    return runtime;
  };

  it('is readable', async () => {
    const { stdout, code } = await run(['show', 's_1'], { runtime: withItems() });
    expect(code).toBe(0);
    for (const text of [
      'read it␛]0;x␇',
      '1.5k in / 20 out',
      '● x::read(path: "a")',
      '└ ✓ x::read',
      '… 28 more lines',
      'error\n  the provider is down',
      'only its provider can read',
    ])
      expect(stdout).toContain(text);
    expect(stdout).not.toMatch(/(?!\n)\p{Cc}/u);
  });

  it('gives every entry as JSON, or the last ones', async () => {
    const all = (await run(['show', 's_1', '--json'], { runtime: withItems() })).stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as MessageItem);
    expect(all).toEqual(items);
    const last = (await run(['show', 's_1', '--json', '-n', '1'], { runtime: withItems() })).stdout;
    expect(JSON.parse(last)).toEqual(items[3]);
  });
});

describe('functions and models', () => {
  const runtime = (): FakeRuntime => {
    const fake = new FakeRuntime();
    const known = [{ function_id: 'coder::read-file', worker_name: 'w', description: 'Reads a file.' }];
    fake.functions['engine::functions::list'] = () => ({ functions: known });
    fake.functions['engine::functions::info'] = ({ function_ids: [id] }: { function_ids: string[] }) => ({
      functions: [
        id === 'coder::read-file' ? { ...known[0], request_schema: { type: 'object' } } : { function_id: id, error: 'not_found' },
      ],
    });
    return fake;
  };

  it('lists functions, and shows one with its schema', async () => {
    expect((await run(['functions'], { runtime: runtime() })).stdout).toMatch(/coder::read-file {2}Reads a file\./);
    expect((await run(['functions', 'coder::read-file'], { runtime: runtime() })).stdout).toContain('request\n{\n  "type": "object"\n}');
    expect(await run(['functions', 'coder::raed-file'], { runtime: runtime() })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean coder::read-file?') as string,
    });
  });

  it('lists providers with what they need', async () => {
    const { stdout } = await run(['models']);
    expect(stdout).toMatch(/openai +no key: set OPENAI_API_KEY/);
    expect(stdout).toMatch(/demo-1 +demo/);
    expect(stdout).toContain('Without --model and --provider: demo-1 from demo');
    expect(JSON.parse((await run(['models', '--provider', 'demo', '--json'])).stdout)).toMatchObject({
      models: [{ id: 'demo-1' }],
      default: { provider: 'demo' },
    });
    expect((await run(['models', '--provider', 'dem'])).code).toBe(2);
  });
});

describe('serve', () => {
  it('C49 says that it is ready, drains once and exits with 0', async () => {
    const runtime = new FakeRuntime();
    const signals = new EventEmitter();
    const open = async (options: RuntimeRequest) => {
      expect(options.role).toBe('worker');
      await options.prepare?.(runtime);
      setTimeout(() => {
        runtime.play([ended('failed', { reason: 'router.permanent', result_error: 'no' })]);
        signals.emit('SIGTERM');
      }, 100);
      return runtime;
    };
    const { code, stdout, stderr } = await run(['serve'], { runtime, signals, open });
    expect({ code, first: runtime.closes[0] }).toEqual({ code: 0, first: 10_000 });
    expect(stdout).toContain('ready: data folder /data');
    const log = stderr
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { level: string; msg: string; [field: string]: unknown });
    expect(log.map(({ msg }) => msg)).toEqual(['ready', 'models', 'turn failed', 'draining', 'stopped']);
    expect(log[1]).toMatchObject({ count: 2, models: 'openai/gpt-large, demo/demo-1' });
    expect(log[2]).toMatchObject({ level: 'warn', session_id: 's_1', reason: 'router.permanent', error: 'no' });
    expect(signals.listenerCount('SIGTERM')).toBe(0);
  });

  it('C49 does not wait at the second signal', async () => {
    const signals = new EventEmitter();
    const runtime = new FakeRuntime();
    let end: () => void = () => undefined;
    runtime.close = (graceMs) => {
      runtime.closes.push(graceMs);
      if (graceMs === 0) end();
      return new Promise((resolve) => {
        end = resolve;
        if (graceMs === 0) resolve();
      });
    };
    const last = runtime.close.bind(runtime);
    runtime.close = (graceMs) => (graceMs === undefined ? Promise.resolve() : last(graceMs));
    setTimeout(() => signals.emit('SIGINT'), 30);
    setTimeout(() => signals.emit('SIGTERM'), 60);
    const { code } = await run(['serve'], { runtime, signals, env: { ANTHROPIC_API_KEY: 'sk-ant-0123456789abcdef' } });
    expect({ code, closes: runtime.closes }).toEqual({ code: 0, closes: [10_000, 0] });
  });
});

describe('doctor', () => {
  const folder = (): string => {
    const path = mkdtempSync(join(tmpdir(), 'cli-doctor-'));
    onTestFinished(() => rmSync(path, { recursive: true }));
    return path;
  };

  it('checks everything, leaves nothing behind and shows no key', async () => {
    const path = join(folder(), 'not-there-yet');
    const key = 'sk-ant-0123456789abcdef0123456789';
    const { code, stdout } = await run(['doctor', '--json', '--data-dir', path], { env: { ANTHROPIC_API_KEY: key } });
    const checks = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { name: string; status: string; detail: string });
    expect(code).toBe(0);
    expect(checks.map(({ name }) => name)).toEqual(['node', 'data folder', 'disk', 'sqlite', 'config', 'store', 'keys', 'redis', 'engine']);
    expect(checks.find(({ name }) => name === 'sqlite')?.detail).toMatch(/WAL, a durable commit takes/);
    expect(stdout).not.toContain(key.slice(0, 12));
    const { existsSync } = await import('node:fs');
    expect(existsSync(path)).toBe(false);
  });

  it('finds a damaged page of the database, and says what to do', async () => {
    const path = folder();
    const { openRuntime, DATABASE_FILE } = await import('#libs/local');
    await (await openRuntime({ dataDir: path, role: 'client' })).close();
    const file = openSync(join(path, DATABASE_FILE), 'r+');
    writeSync(file, Buffer.alloc(4096, 0xa5), 0, 4096, 4096 * 5);
    closeSync(file);
    const { code, stdout } = await run(['doctor', '--data-dir', path], { env: { ANTHROPIC_API_KEY: 'sk-ant-0123456789abcdef' } });
    expect(code).toBe(1);
    expect(stdout).toMatch(/✗ store .*harness\.db is damaged: .+\n +→ Stop every process .*backup/);
  });

  it('exits with 1 and says what to do when something fails', async () => {
    const { code, stdout } = await run(['doctor', '--data-dir', '/dev/null/x'], {
      env: { REDIS_URL: 'redis://127.0.0.1:1', III_URL: 'not a url' },
    });
    expect(code).toBe(1);
    expect(stdout).toMatch(/✗ data folder .*not a folder\n +→ Choose another folder/);
    expect(stdout).toMatch(/✗ redis .*127\.0\.0\.1:1 \(REDIS_URL\): nothing listens there\n +→ Start it/);
    expect(stdout).toMatch(/✗ engine .*III_URL is not a URL/);
    expect(stdout).toMatch(/! keys .*ANTHROPIC_API_KEY is not set/);
  });
});
