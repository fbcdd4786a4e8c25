import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { HarnessError } from '#libs/contracts';
import type { FeedEvent } from '#libs/turn';
import { CATALOG, ended, FakeRuntime, IDS, run, said } from '../../test/fake.js';

const started = (call_id: string, function_id: string, args: object): FeedEvent => ({
  type: 'call_started',
  ...IDS,
  step: 0,
  call_id,
  function_id,
  arguments: args as never,
  description: null,
});
const finished = (call_id: string, function_id: string, outcome: 'ok' | 'error' | 'denied' = 'ok', preview = 'a\nb'): FeedEvent => ({
  type: 'call_finished',
  ...IDS,
  step: 0,
  call_id,
  function_id,
  outcome,
  duration_ms: 12,
  preview,
});
const lines = (text: string): { type: string; [key: string]: unknown }[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string });
const withScript = (...script: FeedEvent[]): FakeRuntime => Object.assign(new FakeRuntime(), { script });

describe('send, as text', () => {
  it('puts the answer alone on standard output, and ends with the summary', async () => {
    const { code, stdout, stderr } = await run(['send', 'hi', 'there'], { runtime: withScript(...said('hel', 'lo')) });
    expect(code).toBe(0);
    expect(stdout).toBe('hello\n');
    expect(stderr.trimEnd().split('\n').at(-1)).toBe(
      'completed · 1 step · 0 calls · 1.2k in / 345 out tokens · $0.0012 · 1.3 s · session s_1',
    );
    expect(stderr).toContain('demo-1 from demo · session s_1\nno API key is set');
  });

  it('shows calls as they start and end, without escapes when piped', async () => {
    const calls = [
      started('c1', 'coder::read-file', { path: 'README.md' }),
      finished('c1', 'coder::read-file'),
      started('c2', 'x::a', {}),
      started('c3', 'x::b', {}),
      finished('c2', 'x::a', 'error', 'no'),
      finished('c3', 'x::b', 'denied', 'policy'),
    ];
    const { stderr, stdout } = await run(['send', 'hi'], { runtime: withScript(...calls, ended('completed', { calls: 3 })) });
    expect(stdout).toBe('');
    expect(stderr).toContain(
      '● coder::read-file(path: "README.md")\n  └ ✓ 12 ms · a b\n● x::a\n● x::b\n  └ ✗ x::a 12 ms · no\n  └ ✗ denied x::b 12 ms · policy\n',
    );
    expect(stderr).not.toContain('\u001b');
  });

  it('C52 shows what a model or a function sends inert', async () => {
    const evil = '\u001b]52;c;aGk=\u0007\u001b[2J\rcompleted';
    const script = [
      { type: 'thinking_delta', ...IDS, step: 0, delta: evil } as const,
      ...said('\u001b', '[2Jx').slice(1, -1),
      started('c1', `x::${evil}`, { [evil]: evil }),
      finished('c1', 'x::y', 'ok', evil),
      { type: 'notice', ...IDS, text: evil } as const,
      ended('failed', { result_error: evil }),
    ];
    const { both, code } = await run(['send', 'hi'], { runtime: withScript(...script) });
    expect(both).not.toMatch(/(?![\t\n])\p{Cc}/u);
    expect(both).toContain('␛[2Jx');
    expect(code).toBe(1);
  });

  it('keeps answer and notes apart on a terminal', async () => {
    const script = [
      ...said('I look.').slice(0, -1),
      started('c1', 'x::a', {}),
      finished('c1', 'x::a'),
      { type: 'text_delta', ...IDS, step: 1, delta: 'Done' } as const,
      ended('completed'),
    ];
    const { both } = await run(['send', 'hi'], { runtime: withScript(...script), tty: true, env: { NO_COLOR: '1' } });
    expect(both.replaceAll('\r\u001b[K', '')).toContain('\n\nI look.\n\n● x::a\n  └ ✓ 12 ms · a b\n\nDone\n\ncompleted · ');
  });

  it('says why a turn failed', async () => {
    const { code, stderr } = await run(['send', 'hi'], {
      runtime: withScript(ended('failed', { result_error: 'the provider answered 500', reason: 'router.permanent' })),
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: the provider answered 500 \(router\.permanent\)\nfailed · /m);
  });

  it.each([
    [{ NO_COLOR: '1' }, true, false],
    [{ TERM: 'dumb' }, true, false],
    [{}, true, true],
    [{}, false, false],
    [{ FORCE_COLOR: '1' }, false, true],
    [{ FORCE_COLOR: '0' }, true, false],
  ])('with %j on a terminal (%s) colours are %s', async (env, tty, colored) => {
    const { stderr } = await run(['send', 'hi'], { env, tty });
    expect(stderr.includes('\u001b[1m')).toBe(colored);
  });
});

describe('send, what it asks for', () => {
  it('passes the options on', async () => {
    const runtime = new FakeRuntime();
    const argv = [
      'send',
      'do',
      'it',
      '-s',
      's_x',
      '--title',
      'T',
      '--allow',
      'a::*',
      'b::*',
      '--allow',
      'c::d',
      '--deny',
      'a::x',
      '--expose',
      'native',
      '--mode',
      'plan',
      '--max-turns',
      '3',
      '--thinking',
      'low',
      '--system',
      'be brief',
      '--strategy',
      'override',
    ];
    expect((await run(argv, { runtime })).code).toBe(0);
    expect(runtime.sent()).toEqual({
      message: 'do it',
      model: 'demo-1',
      provider: 'demo',
      session_id: 's_x',
      session: { title: 'T' },
      options: {
        functions: { allow: ['a::*', 'b::*', 'c::d'], deny: ['a::x'], expose: 'native' },
        mode: 'plan',
        max_turns: 3,
        thinking_level: 'low',
        system_prompt: 'be brief',
        system_prompt_strategy: 'override',
      },
    });
  });

  it('gives no policy when none is asked for', async () => {
    const runtime = new FakeRuntime();
    const { stderr } = await run(['send'], { runtime, stdin: 'from a pipe\n' });
    expect(runtime.sent()).toMatchObject({ message: 'from a pipe', session: { title: 'from a pipe' }, options: {} });
    expect(runtime.sent().options).not.toHaveProperty('functions');
    expect(stderr).toContain('no --allow');
  });

  it('finds the message behind the globs, when nothing else is the message', async () => {
    const runtime = new FakeRuntime();
    expect((await run(['send', '--allow', 'a::*', '--allow', 'b::*', 'read the docs', '--json'], { runtime, stdin: '' })).code).toBe(0);
    expect(runtime.sent()).toMatchObject({ message: 'read the docs', options: { functions: { allow: ['a::*', 'b::*'] } } });
    for (const argv of [
      ['--allow', 'a b'],
      ['hi', '--allow', 'a::*', 'b c'],
      ['--deny', 'a::*', 'b c', 'd e'],
    ]) {
      const refused = await run(['send', ...argv], { runtime: new FakeRuntime() });
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/holds a space/) as string });
    }
  });

  it('takes the data folder from the environment, and global options on either side', async () => {
    const runtime = new FakeRuntime();
    await run(['--data-dir', '/a', 'send', 'hi'], { runtime });
    expect(runtime.opened).toMatchObject({ dataDir: '/a', role: 'client' });
    await run(['send', 'hi', '--data-dir', '/b'], { runtime });
    expect(runtime.opened?.dataDir).toBe('/b');
    await run(['send', 'hi'], { runtime, env: { XDG_DATA_HOME: '/x' } });
    expect(runtime.opened?.dataDir).toBe('/x/harness');
  });

  it('leaves the turn to a worker with --no-wait', async () => {
    const runtime = Object.assign(new FakeRuntime(), { script: [] });
    const { code, stdout } = await run(['send', 'hi', '--no-wait'], { runtime });
    expect({ code, stdout, role: runtime.opened?.role }).toEqual({ code: 0, stdout: 's_1\n', role: 'reader' });
    const json = await run(['send', 'hi', '--no-wait', '--json'], { runtime });
    expect(lines(json.stdout)).toEqual([{ type: 'session', ...IDS, model: 'demo-1', provider: 'demo', merged: false }]);
  });
});

describe('send, which model it takes', () => {
  const keyed = { ...CATALOG, providers: CATALOG.providers.map((provider) => ({ ...provider, configured: true })) };
  const send = (runtime: FakeRuntime, ...argv: string[]) => run(['send', 'hi', ...argv], { runtime });
  const withCatalog = ({ providers, models }: typeof CATALOG): FakeRuntime => {
    const runtime = new FakeRuntime();
    runtime.functions['router::provider::list'] = () => ({ providers });
    runtime.functions['router::models::list'] = () => ({ models });
    return runtime;
  };

  it('the first with a key, else demo, and says so', async () => {
    const runtime = withCatalog(keyed);
    expect((await send(runtime)).stderr).toMatch(/gpt-large from openai .*\nOPENAI_API_KEY is set/);
    expect(runtime.sent()).toMatchObject({ model: 'gpt-large', provider: 'openai' });
  });

  it('the configured one before that', async () => {
    const runtime = withCatalog(keyed);
    const current = runtime.settings.current();
    runtime.settings = { current: () => ({ ...current, default_model: 'demo-1', default_provider: 'demo' }) };
    expect((await send(runtime)).stderr).toMatch(/demo-1 from demo .*\nthe default in the configuration/);
  });

  it('one that the catalog lacks, when the provider is named', async () => {
    const runtime = withCatalog(keyed);
    expect((await send(runtime, '-p', 'openai', '-m', 'brand-new')).code).toBe(0);
    expect(runtime.sent()).toMatchObject({ model: 'brand-new', provider: 'openai' });
  });

  it.each([
    [['-p', 'opnai'], 2, /no provider opnai; did you mean openai\?/],
    [['-m', 'gpt-larg'], 2, /no provider offers the model gpt-larg; did you mean gpt-large\?/],
    [['-p', 'openai'], 3, /provider openai has no key\nSet the environment variable OPENAI_API_KEY/],
    [['-m', 'gpt-large'], 3, /provider openai has no key/],
    [['-p', 'demo', '-m', 'gpt-large'], 2, /the demo provider has no model gpt-large\nIt has demo-1/],
  ])('refuses %j with %i', async (argv, code, reason) => {
    const runtime = new FakeRuntime();
    const result = await send(runtime, ...argv);
    expect(result.code).toBe(code);
    expect(result.stderr).toMatch(reason);
    expect(result.stdout).toBe('');
    expect(runtime.sent()).toBeUndefined();
    expect(runtime.closes).toHaveLength(1);
  });
});

describe('send, as JSON', () => {
  it('prints one event per line, from the session to the end', async () => {
    const { stdout, stderr, code } = await run(['send', 'hi', '--json'], { runtime: withScript(...said('a\u2028\u009b', 'b')) });
    expect(code).toBe(0);
    expect(stderr).toBe('');
    expect(stdout).not.toMatch(/(?!\n)[\p{Cc}\p{Zl}]/u);
    const events = lines(stdout);
    expect(events[0]).toEqual({ type: 'session', ...IDS, model: 'demo-1', provider: 'demo', merged: false });
    expect(events.map((event) => event.type)).toEqual([
      'session',
      'turn_started',
      'step_started',
      'text_delta',
      'text_delta',
      'message_finished',
      'turn_finished',
    ]);
    expect(events[3]).toMatchObject({ delta: 'a\u2028\u009b' });
  });

  it('tells failures as JSON too: bad usage on standard error, the rest at the end of the stream', async () => {
    const usage = await run(['send', 'hi', '--json', '--allow', '**']);
    expect(usage).toMatchObject({ code: 2, stdout: '' });
    expect(JSON.parse(usage.stderr)).toMatchObject({ type: 'error', code: 'cli/usage' });
    const full = await run(['send', 'hi', '--json'], {
      open: () => Promise.reject(new HarnessError('harness/storage', 'the disk is full')),
    });
    expect(full).toMatchObject({ code: 3, stderr: '' });
    expect(JSON.parse(full.stdout)).toMatchObject({ type: 'error', code: 'harness/storage', message: 'the disk is full' });
  });

  it('gives a slow reader everything, with the deltas that waited joined', async () => {
    const text = Array.from({ length: 3000 }, (_, index) => `${index} ${'x'.repeat(50)};`);
    const slow = new PassThrough({ highWaterMark: 1024 });
    let seen = '';
    const reading = (async () => {
      for await (const chunk of slow) {
        seen += String(chunk);
        await new Promise(setImmediate);
      }
    })();
    const { code } = await run(['send', 'hi', '--json'], { runtime: withScript(...said(...text)), stdout: slow });
    slow.end();
    await reading;
    const events = lines(seen);
    expect(code).toBe(0);
    expect(events.at(-1)).toMatchObject({ type: 'turn_finished' });
    expect(events.map((event) => (event.type === 'text_delta' ? event['delta'] : '')).join('')).toBe(text.join(''));
    expect(events.length).toBeLessThan(1000);
  });

  it('goes on quietly when the reader has left, and exits as the turn does', async () => {
    for (const [last, code] of [
      [ended('completed'), 0],
      [ended('failed'), 1],
    ] as const) {
      const gone = new PassThrough();
      gone.once('data', () => gone.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })));
      const result = await run(['send', 'hi', '--json'], { runtime: withScript(...said('a', 'b').slice(0, -1), last), stdout: gone });
      expect(result).toMatchObject({ code, stderr: '' });
    }
  });

  it('tells of a file that cannot take more', async () => {
    const full = new PassThrough();
    full.once('data', () => full.destroy(Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })));
    const result = await run(['send', 'hi'], { runtime: new FakeRuntime(), stdout: full });
    expect(result.code).toBe(3);
    expect(result.stderr).toContain('error: standard output cannot be written: ENOSPC');
  });
});

describe('send, where the turn runs', () => {
  it('follows it in another process', async () => {
    const runtime = Object.assign(new FakeRuntime(), { script: [], owner: 'other', stored: said('from afar') });
    expect(await run(['send', 'hi'], { runtime: runtime as FakeRuntime })).toMatchObject({ code: 0, stdout: 'from afar\n' });
    expect(runtime.followed).toMatchObject([{ fromStart: true }]);
  });

  it('takes it over from a process that is gone', async () => {
    const runtime = Object.assign(new FakeRuntime(), { owner: 'gone' });
    runtime.functions['harness::send'] = () => ({ accepted: true, ...IDS, merged: true });
    const { code, stdout, stderr } = await run(['send', 'hi'], { runtime: runtime as FakeRuntime });
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'hello\n' });
    expect(stderr).toContain('joined the turn');
    expect(runtime.adopted).toEqual(['s_1']);
  });

  it('does not tell of other sessions', async () => {
    const other: FeedEvent = { type: 'text_delta', session_id: 's_2', turn_id: 't_2', step: 0, delta: 'not mine' };
    const { stdout } = await run(['send', 'hi'], { runtime: withScript(other, ...said('mine')) });
    expect(stdout).toBe('mine\n');
  });
});

describe('C49 send and signals', () => {
  const waiting = (): { runtime: FakeRuntime; signals: EventEmitter; stopped: () => boolean } => {
    const signals = new EventEmitter();
    const runtime = withScript(...said('hel').slice(0, 3));
    let stopped = false;
    runtime.functions['harness::stop'] = () => {
      stopped = true;
      queueMicrotask(() => runtime.play([ended('cancelled')]));
      return { stopping: true };
    };
    return { runtime, signals, stopped: () => stopped };
  };
  const whenTold = (runtime: FakeRuntime, act: () => void): void => {
    runtime.feed.subscribe((event) => {
      if (event.type === 'text_delta') setImmediate(act);
    });
  };

  it('stops the turn at the first Ctrl-C and says so', async () => {
    const { runtime, signals, stopped } = waiting();
    whenTold(runtime, () => signals.emit('SIGINT'));
    const { code, stdout, stderr, exits } = await run(['send', 'hi'], { runtime, signals });
    expect({ code, stdout, exits, stopped: stopped() }).toEqual({ code: 130, stdout: 'hel\n', exits: [], stopped: true });
    expect(stderr).toMatch(/stopping the turn[^\n]*\n\ncancelled · /);
    expect(signals.listenerCount('SIGINT')).toBe(0);
  });

  it('leaves at once at the second, and tells how to go on', async () => {
    const { runtime, signals } = waiting();
    runtime.functions['harness::stop'] = () => new Promise(() => undefined);
    whenTold(runtime, () => {
      signals.emit('SIGINT');
      signals.emit('SIGINT');
    });
    const { code, stderr } = await run(['send', 'hi'], { runtime, signals });
    expect(code).toBe(130);
    expect(stderr).toContain('left. The turn is stored: `harness-cli serve` goes on with it');
    expect(runtime.closes[0]).toBe(0);
  });

  it('hands the turn back at SIGTERM', async () => {
    const { runtime, signals, stopped } = waiting();
    whenTold(runtime, () => signals.emit('SIGTERM'));
    const { code } = await run(['send', 'hi'], { runtime, signals });
    expect({ code, stopped: stopped(), closes: runtime.closes }).toEqual({ code: 143, stopped: false, closes: [undefined] });
  });

  it('sends nothing when Ctrl-C comes before', async () => {
    const { runtime, signals } = waiting();
    const open = () => {
      signals.emit('SIGINT');
      return Promise.resolve(runtime);
    };
    expect((await run(['send', 'hi'], { runtime, signals, open })).code).toBe(130);
    expect(runtime.sent()).toBeUndefined();
  });
});

describe('send and secrets', () => {
  it('C55 shows no key that an error carries', async () => {
    const key = 'sk-live-0123456789abcdef0123456789abcdef';
    const runtime = new FakeRuntime();
    runtime.functions['harness::send'] = () => Promise.reject(new Error(`401: bad key ${key} and ${key.slice(0, 24)}…`));
    const { both, code } = await run(['send', 'hi', '--debug'], { runtime, env: { OPENAI_API_KEY: key } });
    expect(code).toBe(3);
    expect(both).not.toContain(key.slice(0, 20));
  });
});
