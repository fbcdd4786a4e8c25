import { expect, it } from 'vitest';
import type { Entry } from '#libs/contracts';
import { Teller } from './teller.js';

const said = (step: number): Entry => ({
  kind: 'message',
  id: `e_t_${step}_assistant`,
  revision: 0,
  timestamp: 1,
  origin: { turn_id: 't' },
  message: {
    role: 'assistant',
    content: [{ type: 'text', text: `step ${step}` }],
    model: 'm',
    provider: 'p',
    stop_reason: 'end',
    timestamp: 1,
  },
});
const summary: Entry = { kind: 'custom', id: 'e_t_200_compaction', revision: 0, timestamp: 1, custom_type: 'compaction', data: {} };

it('tells what is new at once when a summary has made the window shorter, and nothing twice', () => {
  const teller = new Teller('s', 't');
  const texts = (window: Entry[]): string[] => teller.tell(window).flatMap((event) => (event.type === 'text_delta' ? [event.delta] : []));
  const window = Array.from({ length: 200 }, (_, step) => said(step));
  expect(texts(window)).toHaveLength(200);
  expect(texts([summary, ...window.slice(-10), said(200)])).toEqual(['step 200']);
  expect(texts([summary, ...window.slice(-10), said(200), said(201)])).toEqual(['step 201']);
});

it('tells how long a call took: by the clock where it watched, else by what is stored', () => {
  let now = 1_000;
  const call = (id: string): Entry => ({
    kind: 'message',
    id: 'e_t_0_assistant',
    revision: 0,
    timestamp: 1,
    origin: { turn_id: 't' },
    message: {
      role: 'assistant',
      content: [
        { type: 'function_call', id: `${id}1`, function_id: 'f::x', arguments: {} },
        { type: 'function_call', id: `${id}2`, function_id: 'f::x', arguments: {} },
      ],
      model: 'm',
      provider: 'p',
      stop_reason: 'function_call',
      timestamp: 100,
    },
  });
  const result = (id: string, timestamp: number): Entry => ({
    kind: 'message',
    id: `e_t_${id}`,
    revision: 0,
    timestamp,
    origin: { turn_id: 't' },
    message: { role: 'function_result', function_call_id: id, function_id: 'f::x', content: [], details: null, is_error: false, timestamp },
  });
  const times = (teller: Teller, window: Entry[]): number[] =>
    teller.tell(window).flatMap((event) => (event.type === 'call_finished' ? [event.duration_ms] : []));

  const watching = new Teller('s', 't', () => now);
  const window = [call('a')];
  expect(times(watching, window)).toEqual([]);
  now = 3_000;
  window.push(result('a1', 110));
  expect(times(watching, window)).toEqual([2_000]);
  now = 3_500;
  window.push(result('a2', 120));
  expect(times(watching, window)).toEqual([500]);
  expect(times(new Teller('s', 't', () => now), [call('a'), result('a1', 350), result('a2', 400)])).toEqual([250, 50]);
});
