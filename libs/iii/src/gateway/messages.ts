import type { JsonValue, Schema } from '#libs/contracts';
import type { TriggerAction } from '../bus.js';
import { isTooDeep, MAX_DEPTH } from '../depth.js';
import { violation } from '../validation.js';

/** The error of a call or of a registration, on the wire. */
export interface ErrorBody {
  code: string;
  message: string;
  stacktrace?: string | null;
}

/** What a worker sends. Fields that this engine makes no use of are let pass. */
export type WorkerMessage =
  | {
      type: 'registerfunction';
      id: string;
      description?: string | null;
      request_format?: Schema | null;
      response_format?: Schema | null;
      metadata?: { [key: string]: JsonValue } | null;
      invocation?: JsonValue;
      namespace?: string | null;
    }
  | { type: 'unregisterfunction'; id: string }
  | {
      type: 'registertriggertype';
      id: string;
      description?: string | null;
      trigger_request_format?: Schema | null;
      call_request_format?: Schema | null;
      namespace?: string | null;
    }
  | { type: 'unregistertriggertype'; id: string }
  | {
      type: 'registertrigger';
      id: string;
      trigger_type: string;
      function_id: string;
      config?: JsonValue;
      metadata?: JsonValue;
      namespace?: string | null;
      trigger_namespace?: string | null;
    }
  | { type: 'unregistertrigger'; id: string; trigger_type?: string | null }
  | { type: 'triggerregistrationresult'; id: string; error?: ErrorBody | null }
  | {
      type: 'invokefunction';
      invocation_id?: string | null;
      function_id: string;
      data?: JsonValue;
      action?: TriggerAction | null;
      metadata?: JsonValue;
      traceparent?: string | null;
      baggage?: string | null;
      namespace?: string | null;
    }
  | { type: 'invocationresult'; invocation_id: string; result?: JsonValue; error?: ErrorBody | null }
  | { type: 'reattach'; previous_worker_id: string; reattach_token?: string | null }
  | { type: 'registerservice' }
  | { type: 'ping' }
  | { type: 'pong' };

/** What the gateway sends. */
export type EngineMessage =
  | { type: 'workerregistered'; worker_id: string; reattach_token: string }
  | {
      type: 'registrationrejected';
      code: string;
      namespace: string;
      function_id: string;
      owner_worker_id: string;
      message: string;
    }
  | { type: 'triggerregistrationresult'; id: string; trigger_type: string; function_id: string; error?: ErrorBody }
  | { type: 'registertrigger'; id: string; trigger_type: string; function_id: string; config: JsonValue; metadata?: JsonValue }
  | { type: 'unregistertrigger'; id: string; trigger_type: string; function_id: string; config: JsonValue; metadata?: JsonValue }
  | {
      type: 'invokefunction';
      invocation_id?: string;
      function_id: string;
      data: unknown;
      metadata?: JsonValue;
      traceparent?: string;
      baggage?: string;
    }
  | {
      type: 'invocationresult';
      invocation_id: string;
      function_id: string;
      result?: unknown;
      error?: ErrorBody;
      traceparent?: string;
      baggage?: string;
    }
  | { type: 'error'; error: ErrorBody }
  | { type: 'pong' };

/** The one namespace that this engine has. */
export const NAMESPACE = 'default';

const string: Schema = { type: 'string', maxLength: 512 };
const text: Schema = { type: ['string', 'null'] };
const errorBody: Schema = {
  type: ['object', 'null'],
  properties: { code: { type: 'string' }, message: { type: 'string' }, stacktrace: text },
  required: ['code', 'message'],
};
const schema: Schema = { type: ['object', 'boolean', 'null'] };
const message = (properties: { [name: string]: Schema }, required: string[]): Schema => ({ type: 'object', properties, required });

const SCHEMAS: Record<WorkerMessage['type'], Schema> = {
  registerfunction: message(
    {
      id: string,
      description: text,
      request_format: schema,
      response_format: schema,
      metadata: { type: ['object', 'null'] },
      namespace: text,
    },
    ['id'],
  ),
  unregisterfunction: message({ id: string }, ['id']),
  registertriggertype: message(
    { id: string, description: text, trigger_request_format: schema, call_request_format: schema, namespace: text },
    ['id'],
  ),
  unregistertriggertype: message({ id: string }, ['id']),
  registertrigger: message({ id: string, trigger_type: string, function_id: string, namespace: text, trigger_namespace: text }, [
    'id',
    'trigger_type',
    'function_id',
  ]),
  unregistertrigger: message({ id: string, trigger_type: text }, ['id']),
  triggerregistrationresult: message({ id: string, error: errorBody }, ['id']),
  invokefunction: message(
    {
      invocation_id: { type: ['string', 'null'], maxLength: 128 },
      function_id: string,
      action: {
        type: ['object', 'null'],
        properties: { type: { type: 'string', enum: ['void', 'enqueue'] } },
        required: ['type'],
        if: { type: 'object', properties: { type: { const: 'enqueue' } } },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: { properties: { queue: { type: 'string' } }, required: ['queue'] },
      },
      traceparent: { type: ['string', 'null'], maxLength: 256 },
      baggage: { type: ['string', 'null'], maxLength: 8192 },
      namespace: text,
    },
    ['function_id'],
  ),
  invocationresult: message({ invocation_id: { type: 'string' }, error: errorBody }, ['invocation_id']),
  reattach: message({ previous_worker_id: { type: 'string' }, reattach_token: text }, ['previous_worker_id']),
  registerservice: message({}, []),
  ping: message({}, []),
  pong: message({}, []),
};

const isKnown = (type: unknown): type is WorkerMessage['type'] => typeof type === 'string' && Object.hasOwn(SCHEMAS, type);

/** What came of reading one frame: a message, a type that is not known, or what is wrong with it. */
export type Parsed = { kind: 'message'; message: WorkerMessage } | { kind: 'unknown'; type: string } | { kind: 'malformed'; why: string };

/** Reads one text frame of a worker. Never throws. */
export function parseMessage(frame: string): Parsed {
  if (isTooDeep(frame)) return { kind: 'malformed', why: `the message is nested deeper than ${MAX_DEPTH}` };
  let value: unknown;
  try {
    value = JSON.parse(frame);
  } catch {
    return { kind: 'malformed', why: 'the frame is not JSON' };
  }
  const type = typeof value === 'object' && value !== null ? (value as { type?: unknown }).type : undefined;
  if (!isKnown(type)) {
    return typeof type === 'string' ? { kind: 'unknown', type } : { kind: 'malformed', why: 'a message must be an object with a type' };
  }
  const wrong = violation(SCHEMAS[type], value);
  return wrong === null ? { kind: 'message', message: value as WorkerMessage } : { kind: 'malformed', why: `${type}: ${wrong}` };
}
