import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AgentFunction } from '#libs/contracts';
import { ToolNames, wireCallId, wireName } from '../../libs/local/src/providers/shared/names.js';
import { assistant } from '../support/provider-bench.js';

const tool = (name: string): AgentFunction => ({ name, description: '', parameters: null });
/** Ids that look alike: the parts that could be mistaken for each other, in any order. */
const id = fc.oneof(
  fc
    .array(fc.constantFrom('a', 'b', '_', '__', ':', '::', '-', '.', 'h', '-h', 'é', ' ', '/', 'x'.repeat(40)), {
      minLength: 1,
      maxLength: 12,
    })
    .map((parts) => parts.join('')),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 100 }),
);

describe('names on the wire', () => {
  it('are readable where they can be', () => {
    expect(wireName('shell::exec')).toBe('shell__exec');
    expect(wireName('session::set-meta')).toBe('session__set-meta');
    expect(wireName('agent_trigger')).toBe('agent_trigger');
    expect(wireName('a__b')).toMatch(/^a_b-h[0-9a-v]{20}$/);
  });

  it('are always legal', () => {
    fc.assert(fc.property(id, (one) => void expect(wireName(one)).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)));
  });

  it('never collide, also with names that are written like made ones', () => {
    fc.assert(
      fc.property(fc.uniqueArray(id, { maxLength: 30 }), (ids) => {
        const all = [...new Set([...ids, ...ids.map(wireName)])];
        expect(new Set(all.map(wireName)).size).toBe(all.length);
      }),
    );
  });

  it('lead back to the id, of a tool or of a call in the history', () => {
    fc.assert(
      fc.property(fc.uniqueArray(id, { maxLength: 10 }), fc.uniqueArray(id, { maxLength: 10 }), (today, before) => {
        const calls = before.map((function_id, at) => ({ type: 'function_call' as const, id: `c${at}`, function_id, arguments: {} }));
        const names = new ToolNames(today.map(tool), [assistant(calls)]);
        for (const one of [...today, ...before]) expect(names.functionId(wireName(one))).toBe(one);
      }),
    );
  });

  it('that nobody offered are read by the rule', () => {
    const names = new ToolNames([], []);
    expect(names.functionId('nope__x')).toBe('nope::x');
    expect(names.functionId('nope::x')).toBe('nope::x');
    expect(names.functionId('plain')).toBe('plain');
  });

  it('of calls are legal, short and tell calls apart', () => {
    fc.assert(
      fc.property(fc.uniqueArray(id, { maxLength: 20 }), fc.constantFrom(40, 64), (ids, limit) => {
        const wire = ids.map((one) => wireCallId(one, limit));
        for (const one of wire) expect(one).toMatch(new RegExp(`^[a-zA-Z0-9_-]{1,${limit}}$`));
        expect(new Set(wire).size).toBe(ids.length);
      }),
    );
  });
});
