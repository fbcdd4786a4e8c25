import type { Kind } from './protocol.js';

/** How much is run: `tests` every point once, within the ordinary tests; `long` the points in every kind of turn. */
export type Extent = 'tests' | 'long';

/** A place to die at. */
export interface Place {
  kind: Kind;
  /** `<point>#<n>`, as HARNESS_FAILPOINT takes it. */
  failpoint: string;
  /** The least extent that it belongs to. */
  extent: Extent;
  /** The turn has an output contract. */
  contract?: true;
  /** The process has to give signs of life this often, in ms. */
  leaseMs?: number;
}

/** The places of an extent. */
export const within = (places: readonly Place[], extent: Extent): Place[] =>
  places.filter((place) => extent === 'long' || place.extent === 'tests');

const at = (extent: Extent, kind: Kind, ...failpoints: string[]): Place[] => failpoints.map((failpoint) => ({ kind, failpoint, extent }));
const underContract = (place: Place): Place => ({ ...place, contract: true });
const commit = (name: string, n = 1): string[] => [`${name}:before#${n}`, `${name}:after#${n}`];

/** The point of a failpoint, without its count. */
export const pointOf = (failpoint: string): string => failpoint.replace(/#\d+$/, '');

/** Every durable write and dispatch point of the loop, its queue and its processes. All of them have to be died at. */
const WRITES = [
  'register',
  'queue-register',
  'claim',
  'heartbeat',
  'send',
  'merge',
  'begin',
  'generated',
  'generation-failed',
  'nothing-to-reply',
  'sketch',
  'call-screened',
  'call-spawned',
  'call-returned',
  'resolved',
  'expired',
  'spawn',
  'step-failed',
  'stop-requested',
  'turn-completed',
  'turn-failed',
  'turn-cancelled',
  'leftover',
  'outbox',
  'queue-release',
  'release',
] as const;
export const POINTS: readonly string[] = [
  ...WRITES.flatMap((name) => [`${name}:before`, `${name}:after`]),
  'generation:after',
  'dispatch:before',
  'dispatch:after',
];

/** Those that a life under load comes to again and again. */
const NOT_UNDER_LOAD = /^(heartbeat|outbox|release|queue-release|queue-register)/;
export const POINTS_UNDER_LOAD = POINTS.filter((point) => !NOT_UNDER_LOAD.test(point));

/** Those that named queues add to a life under load. */
export const POINTS_OF_JOBS = ['enqueue', 'job-claim', 'job', 'queue-claim'].flatMap((name) => [`${name}:before`, `${name}:after`]);

/** Every point, in a turn that passes it. */
export const PLACES: readonly Place[] = [
  ...at('tests', 'text', ...commit('send'), ...commit('turn-completed'), 'generation:after#1', ...commit('outbox'), ...commit('release')),
  ...at('tests', 'text', ...commit('register'), ...commit('queue-register'), ...commit('queue-release')),
  ...at(
    'tests',
    'tools',
    ...commit('generated'),
    'dispatch:before#1',
    'dispatch:after#1',
    ...commit('call-returned'),
    'dispatch:before#2',
    'dispatch:after#2',
    ...commit('call-returned', 2),
  ),
  ...at('long', 'tools', ...commit('send'), 'generation:after#1', 'generation:after#2', ...commit('turn-completed'), ...commit('outbox')),
  ...at('tests', 'refused', 'generated:after#1'),
  ...at('long', 'refused', 'generated:before#1', 'dispatch:before#1', 'dispatch:after#1', ...commit('call-returned')),
  ...at('tests', 'throws', 'dispatch:after#1'),
  ...at('long', 'throws', 'dispatch:before#1', ...commit('call-returned'), ...commit('turn-completed')),
  ...at('tests', 'broken', ...commit('turn-failed')),
  ...at('long', 'broken', 'generation:after#1'),
  ...at('tests', 'flaky', ...commit('generation-failed')),
  ...at('long', 'flaky', 'generation:after#1', 'generation:after#2', ...commit('turn-completed')),
  ...at('tests', 'slow', ...commit('sketch')),
  ...at('long', 'slow', ...commit('sketch', 2), 'sketch:before#3', 'generation:after#1', ...commit('turn-completed')),
  ...at('tests', 'steer', ...commit('merge'), ...commit('begin')),
  ...at(
    'long',
    'steer',
    'dispatch:before#1',
    'dispatch:after#1',
    ...commit('call-returned'),
    ...commit('call-returned', 2),
    'dispatch:before#3',
    'generation:after#2',
  ),
  ...at('tests', 'stop', ...commit('stop-requested'), ...commit('turn-cancelled')),
  ...at('tests', 'halt', 'turn-cancelled:before#1'),
  ...at('long', 'halt', 'turn-cancelled:after#1', ...commit('stop-requested'), 'generation:after#1', 'sketch:after#1'),
  ...at('tests', 'drop', ...commit('leftover')),
  ...at('long', 'drop', ...commit('merge'), ...commit('stop-requested'), ...commit('turn-cancelled')),
  ...at('tests', 'held', ...commit('call-screened'), ...commit('resolved')),
  ...at('long', 'held', ...commit('generated'), 'dispatch:before#1', 'dispatch:after#1', ...commit('call-returned'), 'dispatch:before#2'),
  ...at('tests', 'lapse', ...commit('expired')),
  ...at('long', 'lapse', ...commit('call-screened'), 'dispatch:before#1', 'dispatch:after#1', 'generation:after#2'),
  ...at('tests', 'spawn', ...commit('call-spawned'), ...commit('turn-completed'), ...commit('resolved')),
  ...at('long', 'spawn', 'generation:after#1', 'generation:after#2', ...commit('generated'), ...commit('turn-completed', 2)),
  ...at('tests', 'detach', ...commit('spawn')),
  ...at('long', 'detach', 'dispatch:after#1', ...commit('call-returned'), ...commit('turn-completed'), ...commit('turn-completed', 2)),
  ...at('tests', 'vetoed', ...commit('turn-failed')),
  ...at('tests', 'barred', ...commit('turn-failed')),
  ...at('tests', 'lost', ...commit('step-failed')),
  ...at('long', 'lost', 'generation:after#2', ...commit('turn-completed')),
  ...at('tests', 'note', ...commit('turn-completed')),
  ...at('tests', 'chase', ...commit('nothing-to-reply')),
  ...at('long', 'chase', ...commit('send'), ...commit('merge'), ...commit('merge', 3), ...commit('turn-completed')),
  ...at('tests', 'lasting', ...commit('heartbeat')).map((place) => ({ ...place, leaseMs: 900 })),
  ...at('tests', 'text', ...commit('generated'), ...commit('generated', 2), ...commit('turn-completed')).map(underContract),
  ...at('long', 'text', 'generation:after#1', 'generation:after#2', 'generation:after#3').map(underContract),
  ...at('long', 'tools', ...commit('call-returned', 2), ...commit('generated', 2), ...commit('turn-completed')).map(underContract),
  ...at('tests', 'leave', 'release:before#1'),
  ...at('long', 'leave', 'release:after#1', ...commit('queue-release')),
];

/** Places of a second life that takes over what a first one left; the first dies in mid-call. */
export const TAKEOVER_PLACES: readonly Place[] = [
  ...at('tests', 'tools', ...commit('claim'), ...commit('call-returned')),
  ...at(
    'long',
    'tools',
    ...commit('register'),
    'dispatch:before#1',
    'dispatch:after#1',
    'generation:after#1',
    ...commit('turn-completed'),
    ...commit('outbox'),
  ),
];
