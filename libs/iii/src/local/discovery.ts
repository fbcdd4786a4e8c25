import type { JsonValue, Schema } from '#libs/contracts';
import { BusError, type FunctionDefinition, type FunctionHandler, type InvocationContext, type RegisterTriggerInput } from '../bus.js';
import { violation } from '../validation.js';
import { type FunctionRecord, isInternal } from './functions.js';
import type { EngineTables } from './tables.js';
import type { TriggerRecord } from './triggers.js';

const NAMESPACE = 'default';
const string: Schema = { type: 'string' };
const optional = (type: string): Schema => ({ type: [type, 'null'] });
const request = (properties: { [name: string]: Schema }, required: string[] = []): Schema => ({ type: 'object', properties, required });

interface ListFunctions {
  prefix?: string | null;
  search?: string | null;
  worker?: string | null;
  workers?: string[] | null;
  include_internal?: boolean | null;
}
interface InfoFunctions {
  function_id?: string | null;
  function_ids?: string[] | null;
}
interface ListTriggers {
  search?: string | null;
  prefix?: string | null;
  worker?: string | null;
  include_internal?: boolean | null;
}
interface ListBindings extends ListTriggers {
  trigger_type?: string | null;
  function_id?: string | null;
}

/** True when every word of `search` is in one of `texts`. */
function matches(search: string | null | undefined, ...texts: (string | undefined)[]): boolean {
  const all = texts.join(' ').toLowerCase();
  return (search ?? '')
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}

const row = ({ definition, worker }: FunctionRecord): { [key: string]: unknown } => ({
  function_id: definition.id,
  namespace: NAMESPACE,
  worker_name: worker.name,
  ...(definition.description === undefined ? {} : { description: definition.description }),
  ...(definition.metadata === undefined ? {} : { metadata: definition.metadata }),
});

const bindingRow = ({ trigger, worker, parked, guard }: TriggerRecord): { [key: string]: unknown } => ({
  id: trigger.id,
  trigger_type: trigger.type,
  function_id: trigger.function_id,
  worker_name: worker?.name ?? guard?.worker ?? null,
  config: trigger.config,
  config_summary: JSON.stringify(trigger.config).slice(0, 120),
  ...(parked === null ? {} : { parked }),
  ...(guard?.away_since == null ? {} : { away_since: guard.away_since }),
});

function listFunctions(engine: EngineTables, query: ListFunctions): { functions: unknown[] } {
  const workers = query.workers ?? (typeof query.worker === 'string' ? [query.worker] : null);
  const rows = engine.functions.all().filter(({ definition, worker }) => {
    const hidden =
      (definition.id.startsWith('engine::') && !definition.id.startsWith('engine::queue::')) || isInternal(definition.metadata);
    if (hidden && query.include_internal !== true) return false;
    if (typeof query.prefix === 'string' && !definition.id.startsWith(query.prefix)) return false;
    if (workers !== null && !workers.includes(worker.name)) return false;
    return matches(query.search, definition.id, definition.description);
  });
  const inId = (record: FunctionRecord): number => (matches(query.search, record.definition.id) ? 0 : 1);
  return { functions: rows.sort((a, b) => inId(a) - inId(b)).map(row) };
}

function infoOf(engine: EngineTables, id: string): { [key: string]: unknown } | null {
  const record = engine.functions.get(id);
  if (record === undefined) return null;
  const bound = engine.triggers.all().filter((t) => t.trigger.function_id === id);
  return {
    ...row(record),
    ...(record.definition.request_format === undefined ? {} : { request_schema: record.definition.request_format }),
    ...(record.definition.response_format === undefined ? {} : { response_schema: record.definition.response_format }),
    registered_triggers: bound.map(({ trigger }) => ({ id: trigger.id, trigger_type: trigger.type, config: trigger.config })),
  };
}

function infoFunctions(engine: EngineTables, query: InfoFunctions): unknown {
  const ids = query.function_ids ?? null;
  if ((ids === null) === (typeof query.function_id !== 'string')) {
    throw new BusError('INVALID_ARGUMENTS', 'give either function_id or function_ids');
  }
  if (ids === null) {
    const info = infoOf(engine, query.function_id as string);
    if (info === null) throw new BusError('NOT_FOUND', `no function ${String(query.function_id)} is registered`);
    return info;
  }
  if (ids.length > 32) throw new BusError('INVALID_ARGUMENTS', 'function_ids may hold at most 32 ids');
  return { functions: [...new Set(ids)].map((id) => infoOf(engine, id) ?? { function_id: id, error: 'not_found' }) };
}

const typeRow = (engine: EngineTables, type: ReturnType<EngineTables['triggers']['allTypes']>[number]): { [key: string]: unknown } => ({
  id: type.definition.id,
  namespace: NAMESPACE,
  worker_name: type.worker.name,
  description: type.definition.description,
  configuration_schema: type.definition.trigger_request_format ?? null,
  request_schema: type.definition.call_request_format ?? null,
  instance_count: engine.triggers.all().filter((t) => t.trigger.type === type.definition.id && t.parked === null).length,
});

/** The `engine::*` functions that a local engine has: discovery of functions, workers, trigger types and triggers. */
export function discoveryFunctions(engine: EngineTables): { definition: FunctionDefinition; handler: FunctionHandler }[] {
  const define = <T>(
    id: string,
    description: string,
    schema: Schema,
    run: (query: T, context: InvocationContext) => unknown,
  ): { definition: FunctionDefinition; handler: FunctionHandler } => ({
    definition: { id, description, request_format: schema },
    handler: (payload, context) => {
      const query = payload ?? {};
      const wrong = violation(schema, query);
      if (wrong !== null) throw new BusError('INVALID_ARGUMENTS', wrong, id);
      return run(query as T, context);
    },
  });
  const listQuery = {
    search: optional('string'),
    prefix: optional('string'),
    worker: optional('string'),
    include_internal: optional('boolean'),
  };
  const found = <T>(value: T | undefined, what: string): T => {
    if (value === undefined) throw new BusError('NOT_FOUND', `no ${what}`);
    return value;
  };
  return [
    define(
      'engine::functions::list',
      'Lists the registered functions, one row each. Narrow it with `search` or `prefix`.',
      request({ ...listQuery, workers: { type: ['array', 'null'], items: string } }),
      (q: ListFunctions) => listFunctions(engine, q),
    ),
    define(
      'engine::functions::info',
      'Shows the full contract of one function (`function_id`) or of several (`function_ids`): description and request and response schemas.',
      request({ function_id: optional('string'), function_ids: { type: ['array', 'null'], items: string } }),
      (q: InfoFunctions) => infoFunctions(engine, q),
    ),
    define(
      'engine::workers::list',
      'Lists the connected workers.',
      request({ search: optional('string'), runtime: optional('string') }),
      (q: { search?: string | null; runtime?: string | null }) => ({
        workers: engine.workers
          .all()
          .filter((w) => matches(q.search, w.name) && (q.runtime == null || q.runtime === w.runtime))
          .map((w) => ({ ...w, status: 'connected' })),
      }),
    ),
    define(
      'engine::workers::info',
      'Shows one worker and what it has registered.',
      request({ name: string }, ['name']),
      (q: { name: string }) => {
        const worker = found(
          engine.workers.all().find((w) => w.name === q.name),
          `worker ${q.name}`,
        );
        return {
          ...worker,
          status: 'connected',
          functions: engine.functions
            .all()
            .filter((f) => f.worker === worker)
            .map((f) => f.definition.id),
        };
      },
    ),
    define('engine::triggers::list', 'Lists the trigger types.', request(listQuery), (q: ListTriggers) => ({
      triggers: engine.triggers
        .allTypes()
        .filter(
          (t) =>
            matches(q.search, t.definition.id, t.definition.description) &&
            t.definition.id.startsWith(q.prefix ?? '') &&
            (q.worker == null || q.worker === t.worker.name),
        )
        .map((t) => ({ id: t.definition.id, namespace: NAMESPACE, worker_name: t.worker.name, description: t.definition.description })),
    })),
    define(
      'engine::triggers::info',
      'Shows one trigger type with the schemas of its configuration and event.',
      request({ id: string }, ['id']),
      (q: { id: string }) =>
        typeRow(
          engine,
          found(
            engine.triggers.allTypes().find((t) => t.definition.id === q.id),
            `trigger type ${q.id}`,
          ),
        ),
    ),
    define(
      'engine::registered-triggers::list',
      'Lists the functions that are bound to triggers.',
      request({ ...listQuery, trigger_type: optional('string'), function_id: optional('string') }),
      (q: ListBindings) => ({
        registered_triggers: engine.triggers
          .all()
          .filter(
            ({ trigger, worker }) =>
              (q.trigger_type == null || q.trigger_type === trigger.type) &&
              (q.function_id == null || q.function_id === trigger.function_id) &&
              (q.worker == null || q.worker === worker?.name) &&
              matches(q.search, trigger.id, trigger.type, trigger.function_id),
          )
          .map(bindingRow),
      }),
    ),
    define('engine::registered-triggers::info', 'Shows one bound trigger.', request({ id: string }, ['id']), (q: { id: string }) =>
      bindingRow(
        found(
          engine.triggers.all().find((t) => t.trigger.id === q.id),
          `trigger ${q.id}`,
        ),
      ),
    ),
    define(
      'engine::register_trigger',
      'Binds a function to a trigger type until it is unregistered, whoever connects or leaves.',
      request({ trigger_type: string, function_id: string, config: true, metadata: true }, ['trigger_type', 'function_id']),
      async (q: { trigger_type: string; function_id: string; config?: JsonValue; metadata?: JsonValue }, { caller }) => {
        const input: RegisterTriggerInput = {
          type: q.trigger_type,
          function_id: q.function_id,
          config: q.config ?? null,
          metadata: q.metadata,
        };
        return { id: await engine.triggers.addStrict(input, engine.workers.remote(caller)) };
      },
    ),
    define(
      'engine::unregister_trigger',
      'Takes a binding back; says whether there was one.',
      request({ id: string, trigger_type: optional('string') }, ['id']),
      async (q: { id: string }) => {
        const owner = engine.triggers.ownerOf(q.id);
        if (owner !== null && !owner.remote) {
          throw new BusError('FORBIDDEN', `${q.id} is bound by ${owner.name} itself, in this process: only that takes it back`);
        }
        return { removed: await engine.triggers.remove(q.id) };
      },
    ),
    define(
      'engine::channels::create',
      'Makes a streaming channel and gives a reference to each end.',
      request({ buffer_size: optional('integer') }),
      (q: { buffer_size?: number | null }, { caller }) => {
        const { writerRef, readerRef } = engine.channels.create(q.buffer_size ?? undefined, engine.workers.remote(caller)?.id);
        return { writer: writerRef, reader: readerRef };
      },
    ),
  ];
}
