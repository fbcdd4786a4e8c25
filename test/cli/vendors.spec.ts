import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { SseEvent, VendorAnswer, VendorServer } from '../support/vendor-server.js';
import { cli, ensureBuilt, eventsOf, folder, type Result, statusOf } from './harness-cli.js';
import { bytesUnder, hasOpenssl, messagesOf, secretsOf, VENDORS, type VendorCase, vendorServer } from './vendor-cli.js';

beforeAll(ensureBuilt, 180_000);

const NOTES = 'The sundial of Ærø says 日本 at noon 👋.\n';
const ARGS = { function: 'coder::read-file', description: 'read the notes', payload: { path: 'notes.txt' } };
const PLAYABLE = VENDORS.filter(({ path }) => hasOpenssl || path !== '/v1/responses');

interface Sent extends Result {
  dataDir: string;
  server: VendorServer;
}

/** Sends one message to a vendor that answers with `answers`. */
async function send(vendor: VendorCase, answers: VendorAnswer[], more: string[] = [], router = ''): Promise<Sent> {
  const [work, dataDir, server] = [folder(), folder(), await vendorServer()];
  writeFileSync(join(work, 'notes.txt'), NOTES);
  mkdirSync(join(dataDir, 'config'));
  writeFileSync(join(dataDir, 'config', 'llm-router.yaml'), `settings: { retry_max: 1, retry_base_ms: 1${router} }\n`);
  writeFileSync(join(dataDir, 'config', 'harness.yaml'), 'step_backoff_ms: 1\n');
  // While the process runs, what it has stored is in the log of the database.
  let live = Buffer.alloc(0);
  const steps = answers.map((answer) => () => {
    live = Buffer.concat([live, bytesUnder(dataDir)]);
    return answer;
  });
  server.script(...steps);
  const argv = ['send', 'what do my notes say?', '--session', 's_v', '--provider', vendor.provider, '--model', vendor.model];
  const env = await vendor.environment(server);
  const result = await cli([...argv, '--allow', 'coder::*', '--data-dir', dataDir, ...more], { cwd: work, env });
  for (const request of server.requests) expect(request).toMatchObject({ method: 'POST', path: vendor.path, violation: null });
  expectNoKey(vendor.key, result, [live, bytesUnder(dataDir)]);
  return { ...result, dataDir, server };
}

function expectNoKey(key: string, { stdout, stderr }: Result, stored: readonly Buffer[]): void {
  for (const bytes of stored) expect(bytes.includes('what do my notes say?')).toBe(true);
  for (const secret of secretsOf(key)) {
    expect(stdout + stderr).not.toContain(secret);
    expect(stored.some((bytes) => bytes.includes(secret))).toBe(false);
  }
}

describe.each(PLAYABLE)('$name', (vendor) => {
  const call = vendor.events([{ text: 'Let me look. ' }, { call: 'agent_trigger', id: 'call_a1', args: ARGS }]);
  const answer = vendor.events([{ text: 'They say 日本 👋.' }]);
  const { usage } = vendor;
  const cached = usage.cache_read ?? 0;

  it('C20 streams a tool turn, however its bytes are cut', async () => {
    const comments = answer.flatMap((event) => [{ comment: 'keep-alive' }, event]);
    const { code, stdout, stderr, dataDir, server } = await send(
      vendor,
      [
        { events: call, delivery: 'bytes', newline: '\r\n' },
        { events: comments, delivery: 'bytes' },
      ],
      ['--json'],
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(server.requests).toHaveLength(2);
    expect(server.requests[0]?.headers[vendor.header.name]).toBe(vendor.header.value);
    expect(JSON.stringify(server.lastBody)).toContain(JSON.stringify(NOTES.trimEnd()).slice(1, -1));

    const events = eventsOf(stdout);
    expect(events.map((event) => (event.type === 'text_delta' ? event.delta : '')).join('')).toBe('Let me look. They say 日本 👋.');
    expect(events.filter((event) => event.type === 'call_finished')).toMatchObject([
      { call_id: 'call_a1', function_id: 'coder::read-file', outcome: 'ok' },
    ]);
    expect(events.at(-1)).toMatchObject({
      type: 'turn_finished',
      status: 'completed',
      steps: 2,
      calls: 1,
      totals: {
        input_tokens: 2 * usage.input,
        output_tokens: 2 * usage.output,
        cache_read_tokens: 2 * cached,
        cost_usd: expect.closeTo(2 * costOf(events), 9) as number,
      },
    });
    expect(costOf(events)).toBeGreaterThan(0);

    expect(await messagesOf(dataDir, 's_v')).toMatchObject([
      { role: 'user', content: [{ type: 'text', text: 'what do my notes say?' }] },
      {
        role: 'assistant',
        stop_reason: 'function_call',
        model: vendor.model,
        provider: vendor.provider,
        usage,
        content: [
          { type: 'text', text: 'Let me look. ' },
          { type: 'function_call', id: 'call_a1', function_id: 'agent_trigger', arguments: ARGS },
        ],
      },
      {
        role: 'function_result',
        function_call_id: 'call_a1',
        function_id: 'coder::read-file',
        is_error: false,
        details: { content: NOTES },
      },
      { role: 'assistant', stop_reason: 'end', usage, content: [{ type: 'text', text: 'They say 日本 👋.' }] },
    ]);
  });

  it('C22 sums up for a person, and tries again when the vendor asks for a moment', async () => {
    const busy = { status: 429, headers: { 'retry-after': '0.2' }, body: vendor.error('rate_limit_error', 'slow down') };
    const { code, stdout, stderr, server } = await send(vendor, [busy, { events: call }, { events: answer }]);
    expect({ code, requests: server.requests.length }).toEqual({ code: 0, requests: 3 });
    expect(stdout).toBe('Let me look. \n\nThey say 日本 👋.\n');
    expect(stderr).toMatch(/● coder::read-file.*notes\.txt[\s\S]*└ ✓/);
    expect(stderr.trimEnd().split('\n').at(-1)).toMatch(
      new RegExp(
        `^completed · 2 steps · 1 call · ${2 * (usage.input + cached)} in.* / ${2 * usage.output} out tokens · \\$0\\.\\d+ · .* · session s_v$`,
      ),
    );
  });
});

type Failure = (vendor: VendorCase) => { answers: VendorAnswer[]; reason: RegExp; text?: string; router?: string };
const half = (vendor: VendorCase): SseEvent[] => vendor.events([{ text: 'They say ' }], true);
const twice = (answer: VendorAnswer): VendorAnswer[] => [answer, answer];
const [anthropic, chat, responses] = VENDORS;

describe('a turn fails readably', () => {
  it.each<[string, (VendorCase | undefined)[], Failure]>([
    [
      'after an error in mid-stream',
      [anthropic, chat],
      (vendor) => ({
        answers: twice({ events: [...half(vendor), vendor.broken], delivery: 'bytes' }),
        reason: /Overloaded/,
        text: 'They say ',
      }),
    ],
    [
      'after an end without the last event',
      [anthropic, chat, responses],
      (vendor) => ({ answers: twice({ events: half(vendor), newline: '\r\n' }), reason: /ended|incomplete|without/, text: 'They say ' }),
    ],
    [
      'after a stall',
      [anthropic],
      (vendor) => ({
        answers: twice({ events: half(vendor), ending: 'stall' }),
        reason: /nothing but pings for 2/,
        text: 'They say ',
        router: ', idle_timeout_ms: 2000, first_byte_timeout_ms: 15000',
      }),
    ],
    [
      'after a key that is refused and sent back',
      [anthropic, chat, responses],
      (vendor) => ({
        answers: [
          { status: 401, body: vendor.error('authentication_error', `invalid key: ${vendor.key} (${vendor.key.slice(0, 24)}...)`) },
        ],
        reason: /401/,
      }),
    ],
    [
      'after the demand of a long pause',
      [chat],
      (vendor) => ({
        answers: [{ status: 429, headers: { 'retry-after': '7200' }, body: vendor.error('rate_limit_error', 'slow down') }],
        reason: /slow down.*2 h/,
      }),
    ],
  ])('%s', async (_when, vendors, failure) => {
    const played = vendors.flatMap((vendor) => (vendor !== undefined && PLAYABLE.includes(vendor) ? vendor : []));
    await Promise.all(
      played.map(async (vendor) => {
        const { answers, reason, text, router } = failure(vendor);
        const { code, stdout, stderr, dataDir, server } = await send(vendor, answers, ['--debug'], router);
        expect({ code, requests: server.requests.length }).toEqual({ code: 1, requests: answers.length });
        expect(stdout.split('\n').filter((line) => line !== '')).toEqual(
          answers.map(() => 'They say ').slice(0, text === undefined ? 0 : 2),
        );
        expect(stderr).toMatch(reason);
        expect(stderr).not.toMatch(/\n\s+at /);
        expect(stderr.trimEnd().split('\n').at(-1)).toMatch(/^failed · .* · session s_v$/);
        expect((await statusOf(dataDir, 's_v')).turn).toMatchObject({ status: 'failed', pending_function_calls: [] });
        const [first, ...rest] = await messagesOf(dataDir, 's_v');
        expect(first).toMatchObject({ role: 'user' });
        const kept = { role: 'assistant', stop_reason: 'error', content: [{ type: 'text', text }] };
        expect(rest).toMatchObject(text === undefined ? [] : [kept]);
      }),
    );
  });
});

describe('a stream that broke off', () => {
  it('is asked for again, and what it had said is replaced', async () => {
    const vendor = anthropic as VendorCase;
    const { code, stdout, stderr, dataDir } = await send(vendor, [
      { events: half(vendor) },
      { events: vendor.events([{ text: 'They say noon.' }]) },
    ]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'They say \n\nThey say noon.\n' });
    expect(stderr).toMatch(/^The answer broke off and is asked for again: /m);
    expect(await messagesOf(dataDir, 's_v')).toMatchObject([
      { role: 'user' },
      { role: 'assistant', stop_reason: 'end', content: [{ type: 'text', text: 'They say noon.' }] },
    ]);
  });

  it('keeps what it had said when asking again is refused', async () => {
    const vendor = anthropic as VendorCase;
    const refusal = { status: 400, body: vendor.error('invalid_request_error', 'no more') };
    const { code, dataDir } = await send(vendor, [{ events: half(vendor) }, refusal]);
    expect(code).toBe(1);
    expect(await messagesOf(dataDir, 's_v')).toMatchObject([
      { role: 'user' },
      { role: 'assistant', stop_reason: 'error', content: [{ type: 'text', text: 'They say ' }] },
    ]);
  });
});

const costOf = (events: ReturnType<typeof eventsOf>): number => {
  const first = events.find((event) => event.type === 'message_finished');
  return first?.type === 'message_finished' ? (first.usage?.cost_usd ?? 0) : 0;
};
