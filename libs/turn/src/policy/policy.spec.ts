import { describe, expect, it } from 'vitest';
import { NEVER_FOR_A_MODEL } from './never.js';
import { compilePolicy, normalizePolicy } from './policy.js';

const everything = { allow: ['*'], deny: [], expose: 'native' } as const;
const policyOf = (allow: string[], deny: string[] = [], lifted: string[] = []) => compilePolicy({ allow, deny, expose: 'native' }, lifted);

describe('what no model reaches (I7)', () => {
  const policy = compilePolicy({ ...everything, allow: ['*'], deny: [] });

  it.each([
    'harness::send',
    'harness::turn',
    'harness::stop',
    'harness::function::trigger',
    'harness::function::resolve',
    'harness::sweep-pending',
    'harness::on-config-change',
    'session::create',
    'session::ensure',
    'session::fork',
    'session::set-meta',
    'session::set-status',
    'session::set-draft',
    'session::set-active-leaf',
    'session::append',
    'session::append-many',
    'session::update-message',
    'session::delete',
    'session::put-attachment',
    'session::delete-attachment',
    'router::chat',
    'router::complete',
    'router::abort',
    'router::provider::register',
    'router::provider::resolve',
    'router::provider::update_credential',
    'router::provider::list',
    'router::models::reconcile',
    'provider::demo::stream',
    'provider::anthropic::refresh_models',
    'configuration::get',
    'configuration::set',
    'approval::resolve',
    'approval::evaluate',
    'engine::workers::register',
    'engine::channels::create',
    'engine::register_trigger',
    'engine::unregister_trigger',
  ])('%s is refused although everything is allowed', (id) => {
    expect(policy.refusal(id)).toBe(`${id} was not called: it is never open to a model.`);
  });

  it.each([
    'session::get',
    'session::list',
    'session::messages',
    'session::messages-tail',
    'session::messages-range',
    'session::get-message',
    'session::get-attachment',
    'session::list-attachments',
    'harness::status',
    'harness::spawn',
    'router::models::list',
    'engine::functions::list',
    'engine::functions::info',
    'coder::read-file',
  ])('%s is open when it is allowed', (id) => {
    expect(policy.refusal(id)).toBeNull();
    expect(policyOf([id]).refusal(id)).toBeNull();
  });

  it('an exact allow does not open a row either', () => {
    for (const row of NEVER_FOR_A_MODEL) expect(policyOf([row, row.replaceAll('*', 'x')]).refusal(row.replaceAll('*', 'x'))).not.toBeNull();
  });

  it('an operator lifts one row and no other', () => {
    const lifted = policyOf(['*'], [], ['router::complete']);
    expect(lifted.refusal('router::complete')).toBeNull();
    expect(lifted.refusal('router::chat')).not.toBeNull();
    expect(policyOf(['x::*'], [], ['router::complete']).refusal('router::complete')).toContain('allows x::*');
    expect(policyOf(['*'], ['router::*'], ['router::complete']).refusal('router::complete')).toContain('denies router::*');
  });
});

describe('compilePolicy', () => {
  it('denies everything without a policy, and with an empty one', () => {
    expect(compilePolicy(null).refusal('coder::info')).toContain('no function policy');
    expect(policyOf([]).refusal('coder::info')).toContain('allows nothing');
  });

  it('lets deny win over allow, whatever is longer or comes first', () => {
    expect(policyOf(['coder::read-file'], ['coder::*']).refusal('coder::read-file')).toContain('denies coder::*');
    expect(policyOf(['*'], ['coder::delete-file']).refusal('coder::delete-file')).toContain('denies coder::delete-file');
  });

  it('tells apart ids that only look alike', () => {
    const policy = policyOf(['coder::*']);
    for (const id of ['Coder::info', 'coder:info', ' coder::info', 'xcoder::info', 'coder', '']) expect(policy.refusal(id)).not.toBeNull();
  });

  it('compiles a policy once', () => {
    const functions = { allow: ['a'], deny: [], expose: 'native' as const };
    expect(compilePolicy(functions)).toBe(compilePolicy(functions));
    expect(compilePolicy(functions, ['router::chat'])).not.toBe(compilePolicy(functions, []));
  });
});

describe('normalizePolicy', () => {
  it('fills in what is left out', () => {
    expect(normalizePolicy(null, 'f')).toBeNull();
    expect(normalizePolicy(undefined, 'f')).toBeNull();
    expect(normalizePolicy({ allow: ['a'] }, 'f')).toEqual({ allow: ['a'], deny: [], expose: 'agent_trigger' });
  });
  it('names the glob that it refuses', () => {
    expect(() => normalizePolicy({ allow: ['a'], deny: ['b', '!c'] }, 'options.functions')).toThrow(
      /options\.functions\.deny\[1\]: the glob "!c" holds "!"/,
    );
  });
});
