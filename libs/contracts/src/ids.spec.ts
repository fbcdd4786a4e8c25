import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { entryIds, newCallId, newEntryId, newSessionId, newTurnId, requestId, sanitizeIdPart } from './ids.js';

describe('ids', () => {
  it.each([
    [newSessionId, 's_'],
    [newTurnId, 't_'],
    [newCallId, 'fc_'],
    [newEntryId, 'e_'],
  ] as const)('are a prefix and 32 hex digits, new each time', (make, prefix) => {
    const made = Array.from({ length: 100 }, make);
    for (const id of made) expect(id).toMatch(new RegExp(`^${prefix}[0-9a-f]{32}$`));
    expect(new Set(made).size).toBe(100);
  });

  it('of entries say what they are of', () => {
    expect([
      entryIds.assistant('t_1', 2),
      entryIds.result('t_1', 'call_1'),
      entryIds.compaction('t_1', 2),
      entryIds.nudge('t_1', 1),
      entryIds.error('t_1'),
      entryIds.notice('t_1', 'stopped'),
      requestId('t_1', 2),
    ]).toEqual(['e_t_1_2_assistant', 'e_t_1_call_1', 'e_t_1_2_compaction', 'e_t_1_nudge_1', 'e_t_1_error', 'e_t_1_stopped', 't_1:2']);
  });

  it('of sends are the same for the same key only', () => {
    expect(entryIds.idempotent('my key/1')).toMatch(/^e_idem_my_key_1/);
    expect(entryIds.idempotent('my key/1')).toBe(entryIds.idempotent('my key/1'));
    expect(new Set(['a b', 'a/b', 'a_b', 'a\u0000b'].map(entryIds.idempotent)).size).toBe(4);
  });

  it('hold nothing unsafe, whatever a caller gives', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (part) => {
        expect(sanitizeIdPart(part)).toMatch(/^[A-Za-z0-9_.-]*$/);
      }),
    );
  });
});
