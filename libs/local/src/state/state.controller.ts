import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import type { JsonValue } from '#libs/contracts';
import { IiiFunction } from '#libs/iii';
import { StateError } from './errors.js';
import { stateSchemas as schemas } from './schemas.js';
import { type EntryPage, StateSnapshots } from './snapshots.js';
import { StateEvents } from './state-events.js';
import { parse, StateStore } from './state-store.js';
import type { UpdateOp, UpdateOpError } from './update-ops.js';

interface Address {
  scope: string;
  key: string;
}

const DEFAULT_LIMIT = 100;
const DEFAULT_MAX_BYTES = 1_000_000;
const invalid = (detail: string): Error => new StateError('INVALID_ARGUMENTS', detail);

/** The `state::*` functions: values by scope and key. */
@Controller()
export class StateController {
  constructor(
    @Inject(StateStore) private readonly store: StateStore,
    @Inject(StateEvents) private readonly events: StateEvents,
    @Inject(StateSnapshots) private readonly snapshots: StateSnapshots,
  ) {}

  @IiiFunction({
    id: 'state::set',
    description: 'Stores a value. Example: {"scope": "orders", "key": "42", "value": {"status": "paid"}}.',
    ...schemas.set,
    invalid,
  })
  async set(
    @Payload() request: Address & { value?: JsonValue; data?: JsonValue },
  ): Promise<{ old_value: JsonValue; new_value: JsonValue }> {
    const { scope, key } = request;
    const value = request.value ?? request.data ?? ('value' in request || 'data' in request ? null : undefined);
    if (value === undefined) throw invalid('value is missing');
    const change = await this.store.set(scope, key, value);
    this.events.changed(scope, key, change);
    return { old_value: change.old ?? null, new_value: change.value ?? null };
  }

  @IiiFunction({
    id: 'state::get',
    description: 'Gives a value, or null. Example: {"scope": "orders", "key": "42"}.',
    ...schemas.get,
    invalid,
  })
  get(@Payload() { scope, key }: Address): JsonValue {
    return this.store.get(scope, key) ?? null;
  }

  @IiiFunction({
    id: 'state::delete',
    description: 'Removes a value and gives what it was, or null. Example: {"scope": "orders", "key": "42"}.',
    ...schemas.delete,
    invalid,
  })
  async delete(@Payload() { scope, key }: Address): Promise<JsonValue> {
    const change = await this.store.delete(scope, key);
    this.events.changed(scope, key, change);
    return change.old ?? null;
  }

  @IiiFunction({
    id: 'state::update',
    description:
      'Changes a value by ops in one step, so that concurrent updates do not lose each other; a missing value starts as an empty object. ' +
      'Ops: set, merge, increment, decrement, append, remove. An op that does not fit is left out and reported in errors. ' +
      'Example: {"scope": "orders", "key": "42", "ops": [{"type": "increment", "path": "tries", "by": 1}, {"type": "append", "path": "log", "value": {"at": 1}}]}.',
    ...schemas.update,
    invalid,
  })
  async update(
    @Payload() { scope, key, ops }: Address & { ops: UpdateOp[] },
  ): Promise<{ old_value: JsonValue; new_value: JsonValue; errors?: UpdateOpError[] }> {
    const { errors, applied, ...change } = await this.store.update(scope, key, ops);
    if (applied) this.events.changed(scope, key, change);
    return { old_value: change.old ?? null, new_value: change.value ?? null, ...(errors.length > 0 ? { errors } : {}) };
  }

  @IiiFunction({
    id: 'state::list',
    description: 'Gives all values of a scope, by key. Example: {"scope": "orders"}.',
    ...schemas.list,
    invalid,
  })
  list(@Payload() { scope }: { scope: string }): JsonValue[] {
    return this.store.rows(scope).map((row) => parse(row.value));
  }

  @IiiFunction({ id: 'state::list_groups', description: 'Gives the names of all scopes. Example: {}.', ...schemas.listGroups, invalid })
  listGroups(): { groups: string[] } {
    return { groups: this.store.groups() };
  }

  @IiiFunction({
    id: 'state::list_keys',
    description: 'Gives the keys of a scope. Example: {"scope": "orders"}.',
    ...schemas.listKeys,
    invalid,
  })
  listKeys(@Payload() { scope }: { scope: string }): { keys: string[] } {
    return { keys: this.store.keys(scope) };
  }

  @IiiFunction({
    id: 'state::list_entries',
    description:
      'Gives keys and values of a scope page by page, as they were when the first page was asked for. Go on with next_cursor until done. ' +
      'Example: {"scope": "orders", "limit": 100}.',
    ...schemas.listEntries,
    invalid,
  })
  listEntries(@Payload() request: { scope: string; cursor?: string | null; limit?: number | null; max_bytes?: number | null }): EntryPage {
    return this.snapshots.page(
      request.scope,
      request.cursor ?? null,
      request.limit ?? DEFAULT_LIMIT,
      request.max_bytes ?? DEFAULT_MAX_BYTES,
    );
  }
}
