import { describe, expect, it } from 'vitest';
import { callSpanId, givenTrace, newSpanId, parseTraceparent, traceOf, traceparentOf } from './ids.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

describe('the place of a turn in its trace', () => {
  it('is always the same, and for a turn with an id of ours its id', () => {
    const own = { trace_id: TRACE, span_id: TRACE.slice(16), parent_id: null, sampled: true };
    expect(traceOf({ turn_id: `t_${TRACE}` })).toEqual(own);
    expect(traceOf({ turn_id: `t_${TRACE}`, traceparent: 'nonsense' })).toEqual(own);
    for (const turn_id of ['t', `t_${'0'.repeat(32)}`, `t_${'a'.repeat(16)}${'0'.repeat(16)}`]) {
      const { trace_id, span_id } = traceOf({ turn_id });
      expect(trace_id).toMatch(/^(?!0+$)[0-9a-f]{32}$/);
      expect(span_id).toMatch(/^(?!0+$)[0-9a-f]{16}$/);
      expect(traceOf({ turn_id })).toEqual(traceOf({ turn_id }));
    }
  });

  it('is below whoever began it', () => {
    const traceparent = `00-${TRACE}-${SPAN}-00`;
    const turn = { turn_id: `t_${'c'.repeat(32)}`, traceparent };
    expect(traceOf(turn)).toEqual({ trace_id: TRACE, span_id: 'c'.repeat(16), parent_id: SPAN, sampled: false });
    expect(traceparentOf(traceOf(turn), SPAN)).toBe(traceparent);
  });
});

it('reads what the standard allows, and nothing else', () => {
  expect(parseTraceparent(`cc-${TRACE}-${SPAN}-03-what-is-to-come`)).toEqual({ trace_id: TRACE, parent_id: SPAN, sampled: true });
  const wrong = [
    '',
    `ff-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-012`,
  ];
  for (const text of wrong) expect([text, parseTraceparent(text), givenTrace(text)]).toEqual([text, null, {}]);
  expect(givenTrace(`00-${TRACE}-${SPAN}-01-${'x'.repeat(500)}`)).toEqual({ traceparent: `00-${TRACE}-${SPAN}-01` });
});

it('makes ids of spans', () => {
  expect(newSpanId()).toMatch(/^[0-9a-f]{16}$/);
  expect(newSpanId()).not.toBe(newSpanId());
  expect(callSpanId('t', 'c')).toMatch(/^[0-9a-f]{16}$/);
  expect(callSpanId('t', 'c')).toBe(callSpanId('t', 'c'));
  expect(callSpanId('t', 'd')).not.toBe(callSpanId('t', 'c'));
});
