import { describe, expect, it, onTestFinished } from 'vitest';
import type { TracePart } from '#libs/turn';
import { newDataDir, removeDataDir } from '../../../../test/support/store.js';
import { openDatabase, SqliteWriter } from '../sqlite/index.js';
import { SpanRecorder } from './recorder.js';
import { SpanTable } from './span-table.js';

const traceId = (n: number): string => n.toString(16).padStart(32, '0');
const part = (n: number, name = 'x', turn = `t_${n}`): TracePart => ({
  trace_id: traceId(n),
  session_id: 's',
  turn_id: turn,
  sampled: true,
  spans: [{ span_id: 'a', parent_id: null, name, kind: 'internal', start_ms: 1, end_ms: 2, error: null, attributes: {} }],
});

async function open(): Promise<{ table: SpanTable; writer: SqliteWriter; count(): number }> {
  const dataDir = newDataDir();
  const db = await openDatabase({ dataDir, durability: 'process' });
  const writer = new SqliteWriter(db);
  onTestFinished(async () => {
    await writer.close();
    db.close();
    removeDataDir(dataDir);
  });
  return { table: new SpanTable(db), writer, count: () => (db.prepare('SELECT count(*) AS n FROM spans').get() as { n: number }).n };
}

describe('stored spans', () => {
  it('are those of the latest traces: the oldest go, whole', async () => {
    const { table, count } = await open();
    for (let n = 1; n <= 1_000; n += 1) table.add([part(n, 'first'), part(n, 'second')], 10);
    expect(table.trace(traceId(1_000))).toHaveLength(2);
    expect(table.trace(traceId(1))).toEqual([]);
    expect(count()).toBeLessThanOrEqual(2 * (10 + 100)); // looked at now and then
  });

  it('of a trace that never ends are bounded, too', async () => {
    const { table, count } = await open();
    for (let n = 0; n < 2_000; n += 1) table.add([part(1, `span ${n}`, `t_${n}`)], 2);
    expect(count()).toBeLessThanOrEqual(2 * 100 + 200);
    expect(table.trace(traceId(1)).at(-1)?.spans[0]?.name).toBe('span 1999');
    expect(table.ofTurn('t_1999')).toEqual({ trace_id: traceId(1), session_id: 's' });
    expect(table.ofTurn('t_0')).toBeNull();
  });

  it('of one turn share a row, and wait in a bounded place: what comes faster than that is dropped', async () => {
    const { table, writer, count } = await open();
    const recorder = new SpanRecorder(table, writer, { keep: () => 10, otlp: null, report: () => undefined });
    for (let n = 0; n < 5_000; n += 1) if (recorder.isOpen) recorder.record(part(1, `span ${n}`));
    expect(recorder.isOpen).toBe(false);
    await recorder.flush();
    expect(recorder.isOpen).toBe(true);
    expect(count()).toBe(1);
    expect(table.trace(traceId(1))[0]?.spans.length).toBeLessThanOrEqual(250);
  });

  it('are lost where they cannot be stored, which is told once', async () => {
    const { table, writer } = await open();
    const reports: string[] = [];
    const recorder = new SpanRecorder(table, writer, { keep: () => 10, otlp: null, report: (message) => void reports.push(message) });
    const broken = part(1);
    Object.defineProperty(broken.spans[0], 'attributes', {
      enumerable: true,
      get: () => {
        throw new Error('cannot be written');
      },
    });
    for (let n = 0; n < 2; n += 1) {
      recorder.record(broken);
      await recorder.flush();
    }
    recorder.record(part(2));
    await recorder.close();
    expect(reports).toEqual(['traces cannot be stored']);
    expect(table.trace(traceId(2))).toHaveLength(1);
  });
});
