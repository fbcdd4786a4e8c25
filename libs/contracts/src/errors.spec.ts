import { describe, expect, it } from 'vitest';
import { errorCode, errorMessage, HarnessError } from './errors.js';

describe('HarnessError', () => {
  it('begins its message with its code and keeps its cause', () => {
    const cause = new Error('deep');
    const error = new HarnessError('harness/storage', 'the disk is full', { retry: 'retry', cause });
    expect([error.message, error.name, error.cause, error.retryable]).toEqual([
      'harness/storage: the disk is full',
      'HarnessError',
      cause,
      true,
    ]);
    expect(new HarnessError('harness/state', 'x').retryable).toBe(false);
  });
});

describe('errorCode', () => {
  it.each<[unknown, string | undefined]>([
    [new HarnessError('harness/state', 'x'), 'harness/state'],
    [new Error('handler error: session/not_found: no session s'), 'session/not_found'],
    [{ code: 'invocation_failed', message: 'context/overflow: too much' }, 'context/overflow'],
    ['web/blocked_host: no', 'web/blocked_host'],
    [{ code: 'timeout', message: 'gave no result' }, 'timeout'],
    [new Error('see https://a/b: no'), undefined],
    [new Error('it broke'), undefined],
    [null, undefined],
    [{ code: 7 }, undefined],
  ])('finds the code in %j', (error, code) => {
    expect(errorCode(error)).toBe(code);
  });
});

describe('errorMessage', () => {
  const cyclic: { self?: unknown } = {};
  cyclic.self = cyclic;

  it.each<[unknown, string]>([
    [new TypeError('no'), 'no'],
    [new TypeError(), 'TypeError'],
    ['text', 'text'],
    [{ message: 'm' }, 'm'],
    [{ a: 1 }, '{"a":1}'],
    [null, 'null'],
    [undefined, 'undefined'],
    [7, '7'],
    [Symbol('s'), 'Symbol(s)'],
    [cyclic, 'an error that cannot be shown as text'],
  ])('reads %s', (error, message) => {
    expect(errorMessage(error)).toBe(message);
  });
});
