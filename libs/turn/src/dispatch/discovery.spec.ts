import { describe, expect, it } from 'vitest';
import { compilePolicy } from '../policy/policy.js';
import { filterDiscovery } from './discovery.js';

const policy = compilePolicy({ allow: ['coder::*', 'harness::*'], deny: ['coder::delete-file'], expose: 'native' });
const row = (function_id: string) => ({ function_id, description: 'd' });

describe('filterDiscovery', () => {
  it('lists only what the policy lets a model call', () => {
    const value = {
      functions: [row('coder::info'), row('coder::delete-file'), row('shell::exec'), row('harness::send'), row('harness::status')],
      total: 5,
    };
    expect(filterDiscovery('engine::functions::list', value, policy)).toEqual({
      functions: [row('coder::info'), row('harness::status')],
      total: 5,
    });
  });
  it('does not tell a refused contract from a missing one', () => {
    const value = { functions: [row('coder::info'), row('shell::exec'), { function_id: 'nope::x', error: 'not_found' }] };
    expect(filterDiscovery('engine::functions::info', value, policy)).toEqual({
      functions: [
        row('coder::info'),
        { function_id: 'shell::exec', error: 'not available' },
        { function_id: 'nope::x', error: 'not available' },
      ],
    });
  });
  it('shows one contract, or nothing of a refused one', () => {
    expect(filterDiscovery('engine::functions::info', row('coder::info'), policy)).toEqual(row('coder::info'));
    expect(
      JSON.stringify(filterDiscovery('engine::functions::info', { ...row('shell::exec'), request_schema: { secret: 1 } }, policy)),
    ).not.toContain('secret');
  });
  it('lets rows without an id and values of another shape show nothing that is refused', () => {
    expect(filterDiscovery('engine::functions::list', { functions: [{ id: 'shell::exec' }, 'shell::exec', null] }, policy)).toEqual({
      functions: [],
    });
    expect(filterDiscovery('engine::functions::list', 'text', policy)).toBe('text');
    expect(filterDiscovery('engine::workers::list', { functions: [row('shell::exec')] }, policy)).toEqual({
      functions: [row('shell::exec')],
    });
  });
});
