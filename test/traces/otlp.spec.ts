import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { TurnSpans } from '../../libs/local/src/traces/index.js';
import { otlpExport } from '../../libs/local/src/traces/otlp.js';
import { ensureBuilt, folder, here, type Running, start } from '../cli/harness-cli.js';
import { type CollectedSpan, type Collector, startCollector, valuesOf } from './support.js';

beforeAll(ensureBuilt, 180_000);

const LOOK = '/call state::get {"scope":"a","key":"b"}';
const named = (spans: readonly CollectedSpan[], name: string): CollectedSpan[] => spans.filter((span) => span.name === name);

/** A worker that exports what it does. */
async function serve(dataDir: string, collector: Collector, env: NodeJS.ProcessEnv = {}): Promise<Running> {
  const worker = start(['serve', '--data-dir', dataDir], {
    env: {
      HARNESS_GATEWAY_PORT: '0',
      HARNESS_HTTP_PORT: 'off',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '20',
      ...env,
    },
  });
  await worker.until('stdout', /is ready/);
  return worker;
}
const send = (dataDir: string, message: string, allow: string): ReturnType<typeof here> =>
  here(['send', message, '--no-wait', '--provider', 'demo', '--allow', allow, '--session', 's', '--data-dir', dataDir]);

describe('export by OTLP over HTTP', () => {
  it('sends each span once, with the names and attributes of the conventions, as the environment says', async () => {
    const [dataDir, collector] = [folder(), await startCollector()];
    const worker = await serve(dataDir, collector, {
      OTEL_SERVICE_NAME: 'the-agents',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20let-me-in',
    });
    await send(dataDir, LOOK, 'state::*');
    await collector.until(1, (span) => span.name === 'invoke_agent');
    worker.signal('SIGTERM');
    expect(await worker.result).toMatchObject({ code: 0 });
    const { spans, requests } = collector;
    expect(spans.map(({ name }) => name).sort()).toEqual([
      'assemble',
      'assemble',
      'chat demo',
      'chat demo',
      'execute_tool state::get',
      'invoke_agent',
      'provider::demo::stream',
      'provider::demo::stream',
      'step 0',
      'step 1',
    ]);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
    const [root] = named(spans, 'invoke_agent');
    const ids = new Set(spans.map(({ spanId }) => spanId));
    for (const span of spans) if (span !== root) expect(ids).toContain(span.parentSpanId);
    expect(root?.parentSpanId ?? '').toBe('');
    const values = valuesOf(named(spans, 'chat demo')[0]?.attributes ?? []);
    expect(values).toMatchObject({
      session_id: 's',
      turn_id: `t_${root?.traceId}`,
      'gen_ai.conversation.id': 's',
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'demo',
      'gen_ai.provider.name': 'demo',
      'gen_ai.response.finish_reasons': { values: [{ stringValue: 'function_call' }] },
    });
    expect(Number(values['gen_ai.usage.input_tokens'])).toBeGreaterThan(0);
    expect(requests[0]).toMatchObject({
      path: '/v1/traces',
      headers: { authorization: 'Bearer let-me-in' },
      resource: { 'service.name': 'the-agents', 'deployment.environment': 'test' },
    });
    expect(BigInt(root?.endTimeUnixNano ?? 0)).toBeGreaterThan(BigInt(root?.startTimeUnixNano ?? 0));
  });

  it('goes on with the same trace in another process after a kill; the turn has one span, with its real begin', async () => {
    const [dataDir, collector] = [folder(), await startCollector()];
    const worker = await serve(dataDir, collector);
    await send(dataDir, `${LOOK}\n/call shell::exec {"command":"sleep","args":["60"]}\n/say done`, '*');
    await collector.until(1, (span) => span.name === 'step 0');
    await here(['traces', 's', '--data-dir', dataDir]); // has the worker store what it has
    worker.signal('SIGKILL');
    await worker.result;
    const before = collector.spans.length;
    const other = await serve(dataDir, collector);
    await collector.until(1, (span) => span.name === 'invoke_agent');
    other.signal('SIGTERM');
    await other.result;
    const { spans } = collector;
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    const [root, ...more] = named(spans, 'invoke_agent');
    expect(more).toEqual([]);
    expect(spans.slice(0, before).some(({ name }) => name === 'step 0')).toBe(true);
    expect(spans.slice(before).map(({ name }) => name)).toContain('step 2');
    const earliest = spans.reduce(
      (least, { startTimeUnixNano: at }) => (BigInt(at) < least ? BigInt(at) : least),
      BigInt(root?.endTimeUnixNano ?? 0),
    );
    expect(earliest).toBe(BigInt(root?.startTimeUnixNano ?? 0));
    // The call that the kill interrupted has an outcome that nobody knows, which marks the trace.
    expect(named(spans, 'execute_tool shell::exec')[0]?.status).toEqual({ code: 2, message: 'outcome_unknown' });
    expect(root?.status.code).toBe(2);
    const { stdout } = await here(['traces', 's', '--json', '--data-dir', dataDir]);
    const stored = JSON.parse(stdout) as TurnSpans;
    expect(stored.trace_id).toBe(root?.traceId);
    expect(stored.spans.map(({ name }) => name)).toEqual(expect.arrayContaining(['step 0', 'step 1', 'step 2']));
  });

  it('tells once that a collector is away, and does without', async () => {
    vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'http://127.0.0.1:9');
    vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', '100');
    vi.stubEnv('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', '1');
    onTestFinished(() => void vi.unstubAllEnvs());
    const reports: string[] = [];
    const otlp = otlpExport((message) => void reports.push(message));
    const span = {
      span_id: 'b7ad6b7169203331',
      parent_id: null,
      name: 'x',
      kind: 'internal' as const,
      start_ms: 1,
      end_ms: 2,
      error: null,
      attributes: {},
    };
    const part = { trace_id: '0af7651916cd43dd8448eb211c80319c', session_id: 's', turn_id: 't', sampled: true };
    for (let n = 0; n < 3; n += 1) otlp.export({ ...part, spans: [span] });
    await otlp.close(10_000);
    expect(reports).toEqual(['traces are not exported']);
  });

  it('says what of its settings it cannot take', async () => {
    vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'nonsense');
    vi.stubEnv('OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc');
    onTestFinished(() => void vi.unstubAllEnvs());
    const said: string[] = [];
    await otlpExport((message) => void said.push(message)).close(0);
    expect(said).toEqual([
      'OTEL_EXPORTER_OTLP_ENDPOINT must be an http address, not "nonsense": no trace is exported',
      'OTEL_EXPORTER_OTLP_PROTOCOL is "grpc", and traces are sent as http/json',
    ]);
  });
});
