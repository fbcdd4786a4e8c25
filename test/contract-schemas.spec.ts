import { describe, expect, it } from 'vitest';
import { harnessFunctions, harnessTriggerTypes } from '#libs/contracts';
import { wire, withoutDescriptions } from './support/wire.js';

describe('published schemas', () => {
  it.each(wire.functions)('$name has the request and response of the contract', (published) => {
    const ours = harnessFunctions[published.name as keyof typeof harnessFunctions];
    expect(withoutDescriptions(ours.request)).toEqual(published.request_schema);
    expect(withoutDescriptions(ours.response)).toEqual(published.response_schema);
  });
  it.each(wire.triggers)('$name has the binding configuration of the contract', (published) => {
    const ours = harnessTriggerTypes[published.name as keyof typeof harnessTriggerTypes];
    expect(withoutDescriptions(ours.config)).toEqual(published.invocation_schema);
  });
  it('has the nine functions and seven trigger types, no more', () => {
    expect(Object.keys(harnessFunctions).sort()).toEqual(wire.functions.map((f) => f.name).sort());
    expect(Object.keys(harnessTriggerTypes).sort()).toEqual(wire.triggers.map((f) => f.name).sort());
  });
});
