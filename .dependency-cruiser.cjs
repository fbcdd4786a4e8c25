/** Each layer may import itself and the layers after it. */
const layers = [
  ['apps', '^apps/'],
  ['service', '^libs/service/'],
  ['local', '^libs/local/'],
  ['turn', '^libs/turn/'],
  ['hooks and prompts', '^libs/(hooks|prompts)/'],
  ['iii', '^libs/iii/'],
  ['contracts', '^libs/contracts/'],
];

const direction = layers.slice(1).map(([name, path], index) => ({
  name: `direction-${name.replaceAll(' ', '-')}`,
  comment: `libs are layers, apps -> service -> local -> turn -> (hooks, prompts) -> iii -> contracts: ${name} may not import from above itself.`,
  severity: 'error',
  from: { path },
  to: { path: layers.slice(0, index + 1).map(([, above]) => above) },
}));

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    ...direction,
    {
      name: 'hooks-and-prompts-apart',
      comment: 'hooks and prompts are one layer of two: neither imports the other.',
      severity: 'error',
      from: { path: '^libs/(hooks|prompts)/' },
      to: { path: '^libs/(hooks|prompts)/', pathNot: '^libs/$1/' },
    },
    {
      name: 'conformance-sees-the-bus-alone',
      comment: 'the conformance run judges any harness from outside: it knows the contract and the bus, and nothing of this loop.',
      severity: 'error',
      from: { path: '^libs/conformance/' },
      to: { path: '^(apps|libs)/', pathNot: '^libs/(conformance|iii|contracts)/' },
    },
    {
      name: 'conformance-is-for-apps',
      comment: 'the loop and its runtime do not know that they are judged.',
      severity: 'error',
      from: { path: '^libs/', pathNot: '^libs/conformance/' },
      to: { path: '^libs/conformance/' },
    },
    {
      name: 'apps-apart',
      comment: 'an app does not import another app; what both need belongs in a lib.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/' },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'turn-sees-ports-only',
      comment: 'the loop knows no store, queue driver, SDK or HTTP: those are adapters behind its ports.',
      severity: 'error',
      from: { path: '^libs/(turn|hooks|prompts|contracts)/' },
      to: {
        path: [
          '(^|node_modules/)(better-sqlite3|bullmq|ioredis|pg|iii-sdk|undici|@anthropic-ai/sdk|openai)(/|$)',
          '(^|node_modules/)@nestjs/(platform-[^/]+|terminus)(/|$)',
          '^(node:)?(http|https|http2|net|tls|dgram)$',
        ],
      },
    },
    {
      name: 'through-the-index',
      comment: 'another lib is imported as #libs/<name>, never by a path into it.',
      severity: 'error',
      from: { path: '^(apps|libs)/([^/]+)/', pathNot: '\\.spec\\.ts$' },
      to: { path: '^libs/([^/]+)/', pathNot: ['^libs/$2/', '^libs/[^/]+/src/index\\.ts$'] },
    },
    {
      name: 'no-cycles',
      comment: 'a cycle makes the order of loading matter; move what both need into a file of its own. Types alone are not loaded.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'resolves',
      comment: 'every import must be found.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-tests-in-the-product',
      comment: 'specs, benches and test helpers are not imported by product code.',
      severity: 'error',
      from: { path: '^(apps|libs)/', pathNot: '(\\.spec\\.ts$|/test/)' },
      to: { path: '(\\.spec\\.ts$|^test/|^bench/)' },
    },
    {
      name: 'no-dev-dependencies',
      comment: 'product code may only need what an installation brings: the dependencies, and what scripts/vendor.mjs copies into dist.',
      severity: 'error',
      from: { path: '^(apps|libs)/', pathNot: '(\\.spec\\.ts$|/test/)' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only', 'npm'], pathNot: '^node_modules/nest-commander/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      conditionNames: ['harness-src', 'import', 'node', 'default'],
      exportsFields: ['exports'],
    },
  },
};
