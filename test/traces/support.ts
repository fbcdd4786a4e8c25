import { createServer, type IncomingHttpHeaders } from 'node:http';
import { onTestFinished } from 'vitest';
import type { TurnSpan, TurnSpans } from '../../libs/local/src/traces/index.js';
import type { TurnRig } from '../support/turn-rig.js';

/** The trace of a turn, as the runtime serves it. */
export const traceOf = (rig: Pick<TurnRig, 'call'>, session_id: string, turn_id?: string): Promise<TurnSpans | null> =>
  rig.call('harness-traces::get', { session_id, ...(turn_id === undefined ? {} : { turn_id }) });

/** Spans as lines of a tree: names, indented, `!` and the code of an error after what failed, `…` after what is open. */
export function tree(spans: readonly TurnSpan[]): string[] {
  const depth = new Map<string, number>();
  return spans.map((span) => {
    const level = span.parent_id === null ? 0 : (depth.get(span.parent_id) ?? -1) + 1;
    depth.set(span.span_id, level);
    return `${'  '.repeat(level)}${span.name}${span.error === null ? '' : ` !${span.error}`}${span.open ? ' …' : ''}`;
  });
}

/** One span as a collector gets it, in the JSON form of OTLP. */
export interface CollectedSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  status: { code: number; message?: string };
  attributes: { key: string; value: { [type: string]: unknown } }[];
}
interface Body {
  resourceSpans: { resource: { attributes: CollectedSpan['attributes'] }; scopeSpans: { spans: CollectedSpan[] }[] }[];
}

/** A collector of OTLP over HTTP that keeps what it is sent. */
export interface Collector {
  url: string;
  spans: CollectedSpan[];
  requests: { path: string; headers: IncomingHttpHeaders; resource: { [key: string]: unknown } }[];
  /** Resolves when `count` spans that meet the test have come. */
  until(count: number, test?: (span: CollectedSpan) => boolean): Promise<CollectedSpan[]>;
}

export async function startCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  const requests: Collector['requests'] = [];
  let changed: () => void = () => undefined;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString()) as Body;
      for (const { resource, scopeSpans } of resourceSpans) {
        requests.push({ path: request.url ?? '', headers: request.headers, resource: valuesOf(resource.attributes) });
        for (const scope of scopeSpans) spans.push(...scope.spans);
      }
      response.setHeader('content-type', 'application/json').end('{}');
      changed();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    spans,
    requests,
    async until(count, test = () => true) {
      for (;;) {
        const found = spans.filter(test);
        if (found.length >= count) return found;
        await new Promise<void>((resolve) => {
          changed = resolve;
        });
      }
    },
  };
}

/** Attributes as an object. */
export const valuesOf = (attributes: CollectedSpan['attributes']): { [key: string]: unknown } =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
