import { describe, expect, it } from 'vitest';
import { errorCode } from '#libs/contracts';
import { matchesGlob } from './globs.js';
import { type RoutingView, route } from './routing.js';
import { defaultRouterSettings, type RouterSettings } from './settings.js';

const catalogs: { [provider: string]: string[] } = {
  anthropic: ['claude-x', 'shared', 'twice'],
  openai: ['gpt-x', 'shared', 'twice'],
  demo: ['demo'],
  bare: ['twice'],
};
const view: RoutingView = {
  providers: ['anthropic', 'bare', 'demo', 'openai'],
  candidates: (model) =>
    Object.keys(catalogs)
      .filter((id) => catalogs[id]?.includes(model))
      .sort(),
  isConfigured: (id) => id !== 'bare' && id !== 'openai',
};
const bothConfigured: RoutingView = { ...view, isConfigured: () => true };
const outcome = (model: string, provider: string | null, settings: Partial<RouterSettings> = {}, over: RoutingView = view): string => {
  try {
    return route(model, provider, { ...defaultRouterSettings, ...settings }, over).provider;
  } catch (error) {
    return errorCode(error) ?? String(error);
  }
};

describe('routing', () => {
  it.each([
    ['claude-x', 'openai', {}, 'openai', 'a named provider wins over the catalog'],
    ['unknown-model', 'anthropic', {}, 'anthropic', 'a named provider takes any model'],
    ['claude-x', 'nobody', {}, 'router/unknown_provider', 'a named provider must exist'],
    ['claude-x', '', {}, 'anthropic', 'an empty provider is none'],
    ['gpt-x', null, {}, 'openai', 'the catalog'],
    ['claude-new', null, {}, 'anthropic', 'heuristic claude*'],
    ['gpt-new', null, {}, 'openai', 'heuristic gpt*'],
    ['o1-mini', null, {}, 'openai', 'heuristic o1*'],
    ['o3', null, {}, 'openai', 'heuristic o3*'],
    ['o4-mini', null, {}, 'openai', 'heuristic o4*'],
    ['demo-2', null, {}, 'demo', 'heuristic demo*'],
    ['llama', null, {}, 'router/no_provider_for_model', 'nobody takes it'],
    ['llama', null, { default_provider: 'openai' }, 'openai', 'the default provider'],
    ['llama', null, { default_provider: 'gone' }, 'router/no_provider_for_model', 'a default provider that is not registered'],
    [
      'llama',
      null,
      {
        routing_heuristics: [
          { pattern: 'll*ma', provider: 'gone' },
          { pattern: '*ama', provider: 'demo' },
        ],
      },
      'demo',
      'heuristics in order, registered ones only',
    ],
    ['claude-x', null, { default_provider: 'demo' }, 'anthropic', 'the catalog wins over the default'],
    ['shared', null, {}, 'anthropic', 'the only configured one of several'],
  ] as [string, string | null, Partial<RouterSettings>, string, string][])(
    '%s with provider %s and %j goes to %s: %s',
    (model, provider, settings, expected) => {
      expect(outcome(model, provider, settings)).toBe(expected);
    },
  );

  it('is ambiguous when several could take the model, unless one is the default', () => {
    expect(outcome('shared', null, {}, bothConfigured)).toBe('router/ambiguous_model');
    expect(outcome('twice', null, { default_provider: 'bare' }, bothConfigured)).toBe('bare');
    expect(() => route('shared', null, defaultRouterSettings, bothConfigured)).toThrow(/anthropic, openai/);
  });

  it('names the known providers', () => {
    expect(() => route('x', 'nobody', defaultRouterSettings, view)).toThrow(/nobody; known providers: anthropic, bare, demo, openai/);
  });
});

describe('globs', () => {
  it.each([
    ['claude*', 'claude', true],
    ['claude*', 'xclaude', false],
    ['*', '', true],
    ['a*a', 'a', false],
    ['a*b*c', 'a-b-c', true],
    ['a*b*c', 'acb', false],
    ['gpt-4.1', 'gpt-4x1', false],
    ['*b*b', 'b', false],
    ['*b*b', 'bb', true],
    ['!x', 'y', false],
    ['{a,b}', 'a', false],
  ])('%s matches %s: %s', (pattern, text, expected) => {
    expect(matchesGlob(pattern, text)).toBe(expected);
  });
});
