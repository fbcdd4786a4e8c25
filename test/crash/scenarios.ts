import type { Kind } from './protocol.js';

/** How much is run: `tests` the least, within the ordinary tests; `short` a minute; `long` everything. */
export type Extent = 'tests' | 'short' | 'long';
const ORDER: readonly Extent[] = ['tests', 'short', 'long'];

/** A place to die at. */
export interface Place {
  kind: Kind;
  /** `<point>#<n>`, as HARNESS_FAILPOINT takes it. */
  failpoint: string;
  /** The least extent that it belongs to. */
  extent: Extent;
}

/** The places of an extent. */
export const within = (places: readonly Place[], extent: Extent): Place[] =>
  places.filter((place) => ORDER.indexOf(place.extent) <= ORDER.indexOf(extent));

const at = (extent: Extent, kind: Kind, ...failpoints: string[]): Place[] => failpoints.map((failpoint) => ({ kind, failpoint, extent }));
const commit = (name: string, n = 1): string[] => [`${name}:before#${n}`, `${name}:after#${n}`];

/** Every named durable write and dispatch point, in a turn that passes it. */
export const PLACES: readonly Place[] = [
  ...at('tests', 'text', 'send:after#1', 'turn-completed:after#1'),
  ...at('short', 'text', 'send:before#1', 'generation:after#1', 'turn-completed:before#1'),
  ...at('long', 'text', ...commit('register'), ...commit('release')),
  ...at('tests', 'tools', 'generated:after#1', 'dispatch:after#1', 'call-returned:before#1'),
  ...at(
    'short',
    'tools',
    'generated:before#1',
    'dispatch:before#1',
    'call-returned:after#1',
    'dispatch:before#2',
    'dispatch:after#2',
    ...commit('call-returned', 2),
  ),
  ...at('long', 'tools', ...commit('send'), 'generation:after#1', 'generation:after#2', ...commit('turn-completed')),
  ...at('short', 'refused', 'generated:after#1'),
  ...at('long', 'refused', 'generated:before#1', 'dispatch:before#1', 'dispatch:after#1', ...commit('call-returned')),
  ...at('short', 'throws', 'dispatch:after#1'),
  ...at('long', 'throws', 'dispatch:before#1', ...commit('call-returned'), ...commit('turn-completed')),
  ...at('short', 'broken', 'turn-failed:after#1'),
  ...at('long', 'broken', 'generation:after#1', 'turn-failed:before#1'),
  ...at('short', 'flaky', 'generation-failed:after#1'),
  ...at('long', 'flaky', 'generation-failed:before#1', 'generation:after#1', 'generation:after#2', ...commit('turn-completed')),
  ...at('short', 'slow', 'sketch:after#2'),
  ...at('long', 'slow', 'sketch:before#1', 'sketch:after#1', 'sketch:before#3', 'generation:after#1', ...commit('turn-completed')),
  ...at('tests', 'steer', 'merge:after#1', 'begin:before#1'),
  ...at('short', 'steer', 'merge:before#1', 'begin:after#1'),
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
  ...at('tests', 'stop', 'stop-requested:after#1'),
  ...at('short', 'stop', 'stop-requested:before#1', ...commit('turn-cancelled')),
  ...at('short', 'halt', 'turn-cancelled:before#1'),
  ...at('long', 'halt', 'turn-cancelled:after#1', ...commit('stop-requested'), 'generation:after#1', 'sketch:after#1'),
  ...at('tests', 'drop', 'leftover:before#1'),
  ...at('short', 'drop', 'leftover:after#1'),
  ...at('long', 'drop', ...commit('merge'), ...commit('stop-requested'), ...commit('turn-cancelled')),
  ...at('tests', 'held', 'resolved:after#1'),
  ...at('short', 'held', 'call-screened:after#1', 'resolved:before#1'),
  ...at(
    'long',
    'held',
    'call-screened:before#1',
    ...commit('generated'),
    'dispatch:before#1',
    'dispatch:after#1',
    ...commit('call-returned'),
    'dispatch:before#2',
  ),
  ...at('tests', 'spawn', 'call-spawned:after#1', 'turn-completed:after#1'),
  ...at('short', 'spawn', 'call-spawned:before#1', 'resolved:after#1'),
  ...at(
    'long',
    'spawn',
    'turn-completed:before#1',
    'resolved:before#1',
    'generation:after#1',
    'generation:after#2',
    ...commit('generated'),
    ...commit('turn-completed', 2),
  ),
  ...at('short', 'leave', 'release:before#1'),
  ...at('long', 'leave', 'release:after#1'),
];

/** Places of a second life that takes over what a first one left; the first dies in mid-call. */
export const TAKEOVER_PLACES: readonly Place[] = [
  ...at('tests', 'tools', 'claim:after#1'),
  ...at('short', 'tools', 'claim:before#1'),
  ...at(
    'long',
    'tools',
    ...commit('register'),
    ...commit('call-returned'),
    'dispatch:before#1',
    'dispatch:after#1',
    'generation:after#1',
    ...commit('turn-completed'),
  ),
];
