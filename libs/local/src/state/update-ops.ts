import type { JsonObject, JsonValue } from '#libs/contracts';

/** A path: nothing or an empty text is the whole value, a text one key of it, a list the keys on the way. Dots mean nothing. */
export type UpdatePath = string | readonly string[] | null;

export type UpdateOp =
  | { type: 'set'; path: string; value?: JsonValue }
  | { type: 'merge'; path?: UpdatePath; value: JsonValue }
  | { type: 'increment'; path: string; by: number }
  | { type: 'decrement'; path: string; by: number }
  | { type: 'append'; path?: UpdatePath; value: JsonValue }
  | { type: 'remove'; path: string };

/** Why one op was left out; the others are applied. */
export interface UpdateOpError {
  op_index: number;
  /** E.g. `increment.not_number`. */
  code: string;
  message: string;
}

const MAX_DEPTH = 32;
const MAX_SEGMENT_BYTES = 256;
const MAX_VALUE_KEYS = 1_024;
const MAX_VALUE_DEPTH = 16;
/** Keys that reach an object's prototype in programs that copy values carelessly. */
const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype']);

interface Holder {
  root: JsonValue | undefined;
}

class OpFault extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/**
 * Applies ops in order to a value; a missing value counts as an empty object. An op that does not fit is left out and
 * reported. Nothing of `old` is changed. `applied` is false when no op did anything.
 */
export function applyUpdateOps(
  old: JsonValue | undefined,
  ops: readonly UpdateOp[],
): { value: JsonValue; errors: UpdateOpError[]; applied: boolean } {
  const holder: Holder = { root: old === undefined ? undefined : structuredClone(old) };
  const errors: UpdateOpError[] = [];
  let applied = false;
  ops.forEach((op, op_index) => {
    try {
      apply(holder, op);
      applied = true;
    } catch (error) {
      if (!(error instanceof OpFault)) throw error;
      errors.push({ op_index, code: `${op.type}.${error.code}`, message: error.message });
    }
  });
  return { value: holder.root ?? (holder.root === null ? null : {}), errors, applied };
}

function apply(holder: Holder, op: UpdateOp): void {
  const path = segmentsOf(op.path ?? null);
  switch (op.type) {
    case 'set':
      write(holder, path, false, () => structuredClone(op.value ?? null));
      break;
    case 'merge':
      merge(holder, path, mergeable(op.value));
      break;
    case 'increment':
      write(holder, path, false, (existing) => add(existing, op.by, path));
      break;
    case 'decrement':
      write(holder, path, false, (existing) => add(existing, -op.by, path));
      break;
    case 'append':
      write(holder, path, path.length > 1, (existing) => append(existing, op.value, path));
      break;
    case 'remove':
      removeKey(holder, path);
      break;
    default:
      op satisfies never;
  }
}

function merge(holder: Holder, path: readonly string[], value: JsonObject): void {
  write(holder, path, true, (existing) => {
    if (path.length === 0 && existing !== undefined && !isObject(existing)) {
      throw new OpFault('target_not_object', `the value is ${typeName(existing)}, not an object`);
    }
    return { ...(isObject(existing) ? existing : {}), ...structuredClone(value) };
  });
}

function removeKey(holder: Holder, [key]: readonly string[]): void {
  if (key === undefined) throw new OpFault('path.empty_segment', 'path is empty; use state::delete to remove the whole value');
  const root = holder.root ?? {};
  if (!isObject(root)) throw new OpFault('target_not_object', `the value is ${typeName(root)}, not an object`);
  delete root[key];
  holder.root = root;
}

/** Puts a new value at a path. With `make`, what stands in the way of a deeper path becomes an object. */
function write(holder: Holder, path: readonly string[], make: boolean, change: (existing: JsonValue | undefined) => JsonValue): void {
  const last = path.at(-1);
  if (last === undefined) {
    holder.root = change(holder.root);
    return;
  }
  const root = holder.root ?? (holder.root === null && !make ? null : {});
  if (!isObject(root) && !make) throw new OpFault('target_not_object', `the value is ${typeName(root)}, not an object`);
  const start: JsonObject = isObject(root) ? root : {};
  let node = start;
  for (const segment of path.slice(0, -1)) {
    const next = Object.hasOwn(node, segment) ? node[segment] : undefined;
    const child: JsonObject = isObject(next) ? next : {};
    node[segment] = child;
    node = child;
  }
  node[last] = change(Object.hasOwn(node, last) ? node[last] : undefined);
  holder.root = start;
}

function add(existing: JsonValue | undefined, by: number, path: readonly string[]): number {
  if (existing === undefined) return by;
  if (typeof existing !== 'number') throw new OpFault('not_number', `a number is expected at ${label(path)}, not ${typeName(existing)}`);
  return existing + by;
}

function append(existing: JsonValue | undefined, value: JsonValue, path: readonly string[]): JsonValue {
  if (existing === undefined) return typeof value === 'string' ? value : [structuredClone(value)];
  if (Array.isArray(existing)) return [...existing, structuredClone(value)];
  if (typeof existing === 'string' && typeof value === 'string') return existing + value;
  throw new OpFault('type_mismatch', `${typeName(value)} cannot be appended to ${typeName(existing)} at ${label(path)}`);
}

function segmentsOf(path: UpdatePath): readonly string[] {
  const segments = path === null || path === '' ? [] : typeof path === 'string' ? [path] : path;
  if (segments.length > MAX_DEPTH) throw new OpFault('path.too_deep', `path has ${segments.length} keys, more than ${MAX_DEPTH}`);
  for (const segment of segments) {
    if (segment === '') throw new OpFault('path.empty_segment', 'path holds an empty key');
    if (Buffer.byteLength(segment) > MAX_SEGMENT_BYTES)
      throw new OpFault('path.segment_too_long', `a key of path is longer than ${MAX_SEGMENT_BYTES} bytes`);
    if (FORBIDDEN.has(segment)) throw new OpFault('path.proto_polluted', `${segment} may not be a key`);
  }
  return segments;
}

function mergeable(value: JsonValue): JsonObject {
  if (!isObject(value)) throw new OpFault('value.not_an_object', `value must be an object, not ${typeName(value)}`);
  const keys = Object.keys(value);
  if (keys.length > MAX_VALUE_KEYS) throw new OpFault('value.too_many_keys', `value has ${keys.length} keys, more than ${MAX_VALUE_KEYS}`);
  const forbidden = keys.find((key) => FORBIDDEN.has(key));
  if (forbidden !== undefined) throw new OpFault('value.proto_polluted', `${forbidden} may not be a key`);
  if (isDeeper(value, MAX_VALUE_DEPTH)) throw new OpFault('value.too_deep', `value is nested deeper than ${MAX_VALUE_DEPTH}`);
  return value;
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isDeeper = (value: JsonValue, depth: number): boolean =>
  typeof value === 'object' && value !== null && (depth === 0 || Object.values(value).some((inner) => isDeeper(inner, depth - 1)));
const typeName = (value: JsonValue): string =>
  value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value === 'object' ? 'an object' : `a ${typeof value}`;
const label = (path: readonly string[]): string => (path.length === 0 ? 'the root' : JSON.stringify(path));
