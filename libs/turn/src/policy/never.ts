import type { JsonObject, JsonValue } from '#libs/contracts';
import { compileGlob, type Glob } from './glob.js';

/**
 * Functions that no model reaches, whatever a send allows (invariant I7). An operator can lift a row in the
 * configuration (`lift_never`), a send cannot.
 */
export const NEVER_FOR_A_MODEL: readonly string[] = [
  'harness::send',
  'harness::turn',
  'harness::stop',
  'harness::function::*',
  'harness::sweep-pending',
  'harness::on-config-change',
  'harness::on-session-deleted',
  'harness-traces::*',
  'session::create',
  'session::ensure',
  'session::fork',
  'session::set-*',
  'session::append*',
  'session::update-*',
  'session::delete*',
  'session::put-*',
  'router::chat',
  'router::complete',
  'router::abort',
  'router::provider::*',
  'router::models::reconcile',
  'provider::*',
  'context::*',
  'configuration::*',
  'approval::*',
  'engine::workers::register',
  'engine::channels::create',
  'engine::register_trigger',
  'engine::unregister_trigger',
  'engine::queue::*',
  'iii::*',
  'queue::*',
];

/**
 * Functions with which a call made for a model would decide over itself, or over what binds it. They stay closed to it also when a
 * function that it may call passes its call on.
 */
const OVER_ITSELF = [
  'approval::*',
  'configuration::*',
  'harness::function::*',
  'harness::on-config-change',
  'engine::unregister_trigger',
].map((row) => ({ row, glob: compileGlob(row) }));

/** Scopes of `state::*` that hold records of turns when they are kept there: who writes them decides what a turn may do. */
const RECORD_SCOPES = /^harness-(turns|turns-open|keys)$/;

/** True for a call that would read or write records of turns in `state::*`; no operator can lift that. */
export const reachesRecords = (functionId: string, payload: JsonValue): boolean =>
  functionId.startsWith('state::') && isObject(payload) && typeof payload['scope'] === 'string' && RECORD_SCOPES.test(payload['scope']);

const isObject = (value: JsonValue): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);

/** True for a function that a call made for a model may not reach by any way; an operator can lift a row. */
export const isClosedToModels = (functionId: string, lifted: readonly string[]): boolean =>
  OVER_ITSELF.some(({ row, glob }) => glob.matches(functionId) && !lifted.includes(row));

/** The rows that are in force when the operator lifts some. */
export function neverGlobs(lifted: readonly string[]): readonly Glob[] {
  const key = lifted.join('\n');
  let globs = compiled.get(key);
  if (globs === undefined) {
    globs = NEVER_FOR_A_MODEL.filter((row) => !lifted.includes(row)).map(compileGlob);
    compiled.set(key, globs);
  }
  return globs;
}

const compiled = new Map<string, readonly Glob[]>();
