import { type HrTime, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { envDetectorSync, type IResource, Resource } from '@opentelemetry/resources';
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace-base';
import { errorMessage } from '#libs/contracts';
import type { Span, TracePart } from '#libs/turn';
import type { SpanExport } from './recorder.js';

const SERVICE = 'harness';

/**
 * Exports spans by OTLP over HTTP, as JSON. Where to, with which headers, under which name and in what batches is what the standard
 * environment variables say (`OTEL_EXPORTER_OTLP_*`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_BSP_*`).
 */
export function otlpExport(report: (message: string, context: { [key: string]: unknown }) => void): SpanExport {
  for (const fault of settingFaults(process.env)) report(fault, {});
  const resource = Resource.default()
    .merge(new Resource({ 'service.name': SERVICE }))
    .merge(envDetectorSync.detect());
  const processor = new BatchSpanProcessor(reporting(new OTLPTraceExporter(), report));
  return {
    export(part) {
      for (const span of part.spans) processor.onEnd(readable(span, part, resource));
    },
    async close(graceMs) {
      let timer: NodeJS.Timeout | undefined;
      const limit = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, graceMs);
      });
      const sent = processor.shutdown().catch(() => undefined); // told by the exporter already
      await Promise.race([sent, limit]).finally(() => clearTimeout(timer));
    },
  };
}

/** What the exporter would take without a word and not do. */
function settingFaults(env: NodeJS.ProcessEnv): string[] {
  const of = (name: string): string | undefined =>
    env[`OTEL_EXPORTER_OTLP_TRACES_${name}`] || env[`OTEL_EXPORTER_OTLP_${name}`] || undefined;
  const [endpoint, protocol] = [of('ENDPOINT'), of('PROTOCOL')];
  return [
    ...(endpoint !== undefined && !URL.canParse(endpoint)
      ? [`OTEL_EXPORTER_OTLP_ENDPOINT must be an http address, not ${JSON.stringify(endpoint)}: no trace is exported`]
      : []),
    ...(protocol !== undefined && protocol !== 'http/json'
      ? [`OTEL_EXPORTER_OTLP_PROTOCOL is ${JSON.stringify(protocol)}, and traces are sent as http/json`]
      : []),
  ];
}

/** Reports a failed export, once until one succeeds again. */
function reporting(exporter: SpanExporter, report: (message: string, context: { [key: string]: unknown }) => void): SpanExporter {
  let failed = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.error !== undefined && !failed) report('traces are not exported', { error: errorMessage(result.error) });
        failed = result.error !== undefined;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  };
}

const readable = (span: Span, { trace_id, session_id, turn_id }: TracePart, resource: IResource): ReadableSpan => ({
  name: span.name,
  kind: span.kind === 'client' ? SpanKind.CLIENT : SpanKind.INTERNAL,
  spanContext: () => ({ traceId: trace_id, spanId: span.span_id, traceFlags: TraceFlags.SAMPLED }),
  ...(span.parent_id === null ? {} : { parentSpanId: span.parent_id }),
  startTime: hrTime(span.start_ms),
  endTime: hrTime(span.end_ms),
  duration: hrTime(span.end_ms - span.start_ms),
  status: span.error === null ? { code: SpanStatusCode.UNSET } : { code: SpanStatusCode.ERROR, message: span.error },
  attributes: {
    session_id,
    turn_id,
    'gen_ai.conversation.id': session_id,
    ...(span.error === null ? {} : { 'error.type': span.error }),
    ...span.attributes,
  },
  links: [],
  events: [],
  ended: true,
  resource,
  instrumentationLibrary: { name: SERVICE },
  droppedAttributesCount: 0,
  droppedEventsCount: 0,
  droppedLinksCount: 0,
});

/** Seconds and nanoseconds. */
const hrTime = (ms: number): HrTime => {
  const seconds = Math.trunc(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1_000_000)];
};
