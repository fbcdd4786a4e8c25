import { expect, it } from 'vitest';
import { baggageFor, withProvenance } from './provenance.js';

const agent = { session_id: 's_1', turn_id: 't_1, x=y;z', depth: 1 };

it('for whom a call is made travels in the baggage, beside what is there, and back into the metadata', () => {
  const baggage = baggageFor({ baggage: 'a=1,harness.agent=old' }, { agent, tag: 1 });
  expect(baggage?.split(',')[0]).toBe('a=1');
  expect(withProvenance(undefined, baggage)).toEqual({ agent });
  expect(withProvenance({ tag: 2 }, `${baggage ?? ''},b=2`)).toEqual({ tag: 2, agent });
});

it('a call that names its own keeps it, and what cannot be read is nobody', () => {
  const baggage = baggageFor(undefined, { agent });
  expect(withProvenance({ agent: { session_id: 's_2' } }, baggage)).toEqual({ agent: { session_id: 's_2' } });
  for (const broken of [undefined, '', 'harness.agent', 'harness.agent=%zz', 'harness.agent=x', ',,=']) {
    expect(withProvenance({ tag: 1 }, broken)).toEqual({ tag: 1 });
  }
  expect([baggageFor(undefined, undefined), baggageFor({ baggage: 'a=1' }, null)]).toEqual([undefined, 'a=1']);
});
