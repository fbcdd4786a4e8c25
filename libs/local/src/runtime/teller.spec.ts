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
