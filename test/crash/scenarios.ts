import type { Kind } from './protocol.js';

/** A place to die at: the point, and how often it is passed before. */
export interface Place {
  kind: Kind;
  /** `<point>#<n>`, as HARNESS_FAILPOINT takes it. */
  failpoint: string;
  /** Only in the long form. */
  long?: boolean;
}

const commit = (name: string, n = 1): string[] => [`${name}:before#${n}`, `${name}:after#${n}`];
const places = (kind: Kind, ...failpoints: string[]): Place[] => failpoints.map((failpoint) => ({ kind, failpoint }));
const longOnly = (kind: Kind, ...failpoints: string[]): Place[] => places(kind, ...failpoints).map((place) => ({ ...place, long: true }));

/** Every named durable write and dispatch point, in a turn that passes it. */
export const PLACES: readonly Place[] = [
  ...places('text', ...commit('send'), 'generation:after#1', ...commit('turn-completed')),
  ...longOnly('text', ...commit('register'), ...commit('release')),
  ...places('tools', ...commit('generated'), 'dispatch:before#1', 'dispatch:after#1', ...commit('call-returned'), 'dispatch:before#2', 'dispatch:after#2', ...commit('call-returned', 2)),
  ...longOnly('tools', ...commit('send'), 'generation:after#1', 'generation:after#2', ...commit('turn-completed')),
  ...places('refused', ...commit('generated')),
  ...longOnly('refused', 'dispatch:before#1', 'dispatch:after#1', ...commit('call-returned')),
  ...places('throws', 'dispatch:after#1'),
  ...longOnly('throws', 'dispatch:before#1', ...commit('call-returned'), ...commit('turn-completed')),
  ...places('broken', ...commit('turn-failed')),
  ...longOnly('broken', 'generation:after#1'),
  ...places('flaky', ...commit('generation-failed')),
  ...longOnly('flaky', 'generation:after#1', 'generation:after#2', ...commit('turn-completed')),
  ...places('slow', 'sketch:after#2'),
  ...longOnly('slow', 'sketch:before#1', 'sketch:after#1', 'sketch:before#3', 'generation:after#1', ...commit('turn-completed')),
  ...places('steer', ...commit('merge'), ...commit('begin')),
  ...longOnly('steer', 'dispatch:before#1', 'dispatch:after#1', ...commit('call-returned'), ...commit('call-returned', 2), 'dispatch:before#3', 'generation:after#2'),
  ...places('stop', ...commit('stop-requested'), ...commit('turn-cancelled')),
  ...places('halt', 'stop-requested:after#1', ...commit('turn-cancelled')),
  ...longOnly('halt', 'stop-requested:before#1', 'generation:after#1', 'sketch:after#1'),
  ...places('leave', ...commit('release')),
];

/** Places of a second life that takes over what a first one left; the first dies in mid-call. */
export const TAKEOVER_PLACES: readonly Place[] = [
  ...places('tools', ...commit('claim')),
  ...longOnly('tools', ...commit('register'), ...commit('call-returned'), 'dispatch:before#1', 'dispatch:after#1', 'generation:after#1', ...commit('turn-completed')),
];
