import type { Chance } from './chance.js';

/** Functions that are there, with counters. */
export const REAL_FUNCTIONS = [
  'probe::a',
  'probe::b',
  'files::read',
  'files::write',
  'mail::send',
  '__proto__',
  'constructor',
  'toString',
] as const;
const OWN_FUNCTIONS = [
  'harness::send',
  'harness::stop',
  'harness::turn',
  'harness::status',
  'harness::spawn',
  'harness::function::resolve',
  'harness::function::trigger',
  'harness::sweep-pending',
  'session::delete',
  'session::append',
  'session::set-meta',
  'session::list',
  'router::chat',
  'router::provider::register',
  'router::abort',
  'provider::hostile::stream',
  'configuration::set',
  'state::set',
  'engine::functions::list',
  'engine::functions::info',
  'engine::register_trigger',
  'engine::channels::create',
  'engine::workers::register',
] as const;
const GLOBS = [
  '*',
  'probe::*',
  'probe::a',
  '*::a',
  'files::*',
  '*::read',
  '*e*',
  'harness::*',
  'session::*',
  'engine::*',
  'router::*',
  '__proto__',
  '*o*',
  'nothing::*',
];

const TEXTS = [
  '',
  ' ',
  '\n',
  'hello',
  '\ud800',
  'a\udc00b',
  '\u0000\u0001\u001b[2J\u001b]52;c;aGk=\u0007',
  '\u202egnp.exe',
  '\uFEFF',
  '👩‍👩‍👧',
  '\u2028\u2029',
  '```json\n{}\n```',
  '{"n": 1}',
  '<script>',
  '__proto__',
];
const IDS = [
  '',
  ' ',
  'c1',
  'c1',
  'c2',
  'stopped',
  'error',
  'max_turns',
  'nudge_1',
  '0_assistant',
  '1_compaction',
  '../../etc',
  'a b',
  'ü',
  '__proto__',
  'constructor',
  '\ud800',
  '\u0000',
];

/** A random policy of a send, or none. */
export function policyOf(random: Chance): { allow: string[]; deny: string[]; expose: 'native' | 'agent_trigger' } | null {
  if (random.chance(0.1)) return null;
  return { allow: random.some(GLOBS, 0.4), deny: random.some(GLOBS, 0.05), expose: random.pick(['native', 'agent_trigger']) };
}

/** A text: short and odd, or long. */
function textOf(random: Chance): string {
  if (random.chance(0.02)) return random.pick(['x', '\ud83d', '\n', '"']).repeat(random.int(50_000, 600_000));
  return random.list(0, 4, () => random.pick(TEXTS)).join('');
}

/** A function id: of a real function, of one of ours, or nearly one. */
function functionId(random: Chance): unknown {
  const real = random.pick<string>(random.chance(0.7) ? REAL_FUNCTIONS : OWN_FUNCTIONS);
  return random.weighted<unknown>([
    [60, () => real],
    [3, () => `${real} `],
    [3, () => real.toUpperCase()],
    [3, () => `${real}\u0000`],
    [3, () => real.replace('::', ':::')],
    [3, () => `x${real}`],
    [3, () => `${real}::more`],
    [3, () => real.replace('a', 'а')],
    [3, () => real.replace('::', '__')],
    [3, () => 'agent_trigger'],
    [3, () => 'submit_result'],
    [3, () => '*'],
    [3, () => `${real}\nharness::send`],
    [1, () => 'a'.repeat(random.int(1_000, 100_000))],
    [4, () => anything(random, 1)],
  ]);
}

/** A value of any kind, sometimes one that JSON does not have: in the process frames are handed over as they are. */
function anything(random: Chance, depth: number): unknown {
  return random.weighted<unknown>([
    [4, () => random.pick(TEXTS)],
    [2, () => random.pick([0, -1, 1.5, 1e308, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY])],
    [2, () => random.pick([true, false, null])],
    [1, () => undefined],
    [depth > 3 ? 0 : 3, () => random.list(0, 4, () => anything(random, depth + 1))],
    [
      depth > 3 ? 0 : 4,
      () =>
        Object.fromEntries(
          random.list(0, 4, () => [
            random.pick([...TEXTS, 'function', 'payload', 'task', 'type', 'toJSON', 'length']),
            anything(random, depth + 1),
          ]),
        ),
    ],
    [0.3, () => nested(random.int(100, 20_000))],
    [0.3, () => cyclic()],
    [0.3, () => 10n ** 30n],
    [0.3, () => new Date(Number.NaN)],
    [0.3, () => JSON.parse('{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}}') as unknown],
  ]);
}

function nested(depth: number): unknown {
  let value: unknown = 'deep';
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { value };
  return value;
}

function cyclic(): unknown {
  const value: { [key: string]: unknown } = { name: 'cycle' };
  value['self'] = value;
  value['list'] = [value, [value]];
  return value;
}

/** Arguments of a call: right, as text, cut off, or anything. */
function argumentsOf(random: Chance, tag: string): unknown {
  const target = {
    function: functionId(random),
    description: textOf(random).slice(0, 200),
    payload: random.chance(0.6) ? {} : anything(random, 0),
  };
  return random.weighted<unknown>([
    [40, () => target],
    [8, () => ({ function: 'harness::spawn', description: 'd', payload: spawnArguments(random, tag) })],
    [8, () => spawnArguments(random, tag)],
    [8, () => JSON.stringify({ function: 'probe::a', description: 'd', payload: {} })],
    [8, () => random.pick(['{"function": "probe::a", "payl', '', 'null', '[]', '"text"', '{}'])],
    [8, () => ({ function: 'agent_trigger', description: 'd', payload: target })],
    [10, () => anything(random, 0)],
  ]);
}

const spawnArguments = (random: Chance, tag: string): unknown => ({
  task: random.chance(0.8) ? `${tag} child` : anything(random, 1),
  options: random.chance(0.5)
    ? undefined
    : {
        functions: random.chance(0.8) ? policyOf(random) : anything(random, 1),
        max_turns: random.pick([0, 1, 2, 1_000_000]),
        max_children: random.pick([0, 5, 1_000]),
      },
  ...(random.chance(0.1) ? { session_id: random.pick(['fuzz-0', 'fuzz-1', '', ' ', tag]) } : {}),
});

function block(random: Chance, tag: string, isRude: boolean): unknown {
  const rude = isRude ? 1 : 0;
  const call = (): unknown => ({
    type: 'function_call',
    id: random.pick(IDS),
    function_id: random.chance(0.5) ? 'agent_trigger' : functionId(random),
    arguments: argumentsOf(random, tag),
  });
  return random.weighted<unknown>([
    [30, () => ({ type: 'text', text: textOf(random) })],
    [50, call],
    [4, () => ({ type: 'thinking', text: textOf(random), signature: random.pick([null, undefined, 'sig', 5]) })],
    [2, () => ({ type: 'redacted_thinking', data: random.pick(['', 'x', 5]) })],
    [2, () => ({ type: 'image', data: random.pick(['', '!!', 5]), mime: random.pick(['image/png', '', 5]) })],
    [
      3,
      () => ({
        type: 'function_result',
        function_call_id: random.pick(IDS),
        content: random.pick([[], 'x', null, [{ type: 'text', text: 'forged' }]]),
        is_error: false,
      }),
    ],
    [1, () => ({ type: random.pick(['video', '', '__proto__']) })],
    [6 * rude, () => ({ type: 'text', text: anything(random, 2) })],
    [
      6 * rude,
      () => ({ type: 'function_call', id: anything(random, 3), function_id: anything(random, 3), arguments: anything(random, 1) }),
    ],
    [6 * rude, () => anything(random, 3)],
  ]);
}

/** A message of the model, near to a right one or not. */
function messageOf(random: Chance, tag: string): unknown {
  const isRude = random.chance(0.15);
  const many = random.chance(0.01)
    ? random.list(1_000, 3_000, (n) => ({
        type: 'function_call',
        id: `m${n}`,
        function_id: random.pick(['harness::send', 'nothing::there']),
        arguments: {},
      }))
    : null;
  const content = many ?? random.list(0, 5, () => block(random, tag, isRude));
  const message: { [key: string]: unknown } = {
    role: 'assistant',
    content,
    model: 'hostile-1',
    provider: 'hostile',
    timestamp: 1,
    stop_reason: random.weighted<unknown>([
      [50, () => 'function_call'],
      [20, () => 'end'],
      [6, () => 'length'],
      [1, () => 'aborted'],
      [1, () => 'error'],
      [4, () => anything(random, 3)],
    ]),
    usage: random.weighted<unknown>([
      [40, () => ({ input: 1, output: 1 })],
      [5, () => null],
      [5, () => ({ input: -5, output: Number.NaN, cost_usd: 'much' })],
      [4, () => anything(random, 3)],
    ]),
  };
  if (isRude && random.chance(0.3)) message[random.pick(Object.keys(message))] = anything(random, 1);
  if (isRude && random.chance(0.3)) delete message[random.pick(Object.keys(message))];
  return message;
}

function noise(random: Chance, tag: string, isRude: boolean): unknown {
  const rude = isRude ? 1 : 0;
  const partial = random.chance(0.3) ? { partial: random.chance(isRude ? 0.5 : 1) ? messageOf(random, tag) : anything(random, 1) } : {};
  return random.weighted<unknown>([
    [20, () => ({ type: 'text_delta', delta: textOf(random), ...partial })],
    [
      8,
      () => ({ type: random.pick(['text_start', 'text_end', 'thinking_start', 'thinking_end', 'functioncall_end', 'start']), ...partial }),
    ],
    [8, () => ({ type: 'functioncall_start', id: random.pick(IDS), ...partial })],
    [8, () => ({ type: 'functioncall_delta', delta: random.pick(['{"function":', '"probe::a"}', textOf(random)]), ...partial })],
    [4, () => ({ type: 'thinking_delta', delta: textOf(random) })],
    [3, () => ({ type: 'usage', usage: random.pick([{ input: 5 }, null, 'x', { input: 'x' }]) })],
    [3, () => ({ type: random.pick(['ping', 'stop']) })],
    [4 * rude, () => ({ type: random.pick(['text_delta', 'thinking_delta', 'functioncall_delta']), delta: anything(random, 2) })],
    [3 * rude, () => ({ type: anything(random, 3) })],
    [3 * rude, () => anything(random, 2)],
  ]);
}

/** What a hostile model does in one generation: frames in a row, and how it ends. */
export interface HostilePlay {
  frames: unknown[];
  end: 'close' | 'throw' | 'hang';
}

/** The frames of one generation. `tag` names the conversation in the tasks of children. */
export function hostilePlay(random: Chance, tag: string): HostilePlay {
  const isRude = random.chance(0.12);
  const frames: unknown[] = random.chance(0.01)
    ? random.list(1_000, 5_000, () => ({ type: 'text_delta', delta: 'x' }))
    : random.list(0, 8, () => noise(random, tag, isRude));
  const done = (): unknown => ({ type: 'done', message: random.chance(isRude ? 0.8 : 1) ? messageOf(random, tag) : anything(random, 1) });
  const error = (): unknown => ({
    type: 'error',
    error: {
      ...(messageOf(random, tag) as object),
      stop_reason: 'error',
      error_kind: random.pick(['permanent', 'transient', 'rate_limited', 'odd', 5]),
      error_message: random.pick(['broken', '', 5, undefined]),
    },
  });
  random.weighted<number>([
    [70, () => frames.push(done())],
    [4, () => frames.push(error())],
    [4, () => frames.push(done(), done())],
    [3, () => frames.push(error(), done())],
    [3, () => frames.push(done(), ...random.list(1, 4, () => noise(random, tag, isRude)))],
    [6, () => frames.length],
  ]);
  return {
    frames,
    end: random.weighted<HostilePlay['end']>([
      [97, () => 'close'],
      [2, () => 'throw'],
      [1, () => 'hang'],
    ]),
  };
}
