import type { Schema } from '#libs/contracts';
import { BusError } from '../bus.js';
import type { WorkerRecord } from '../local/workers.js';
import { violation } from '../validation.js';
import { NAMESPACE } from './messages.js';

const text: Schema = { type: ['string', 'null'], maxLength: 2000 };
const SCHEMA: Schema = {
  type: ['object', 'null'],
  properties: {
    name: text,
    runtime: text,
    version: text,
    description: text,
    os: text,
    isolation: text,
    namespace: text,
    pid: { type: ['integer', 'null'] },
  },
};

interface Described {
  name?: string | null;
  runtime?: string | null;
  version?: string | null;
  description?: string | null;
  os?: string | null;
  isolation?: string | null;
  namespace?: string | null;
  pid?: number | null;
}

/** Takes over what a worker says of itself. One that wants another namespace is turned away. */
export function describeWorker(worker: WorkerRecord, data: unknown, turnAway: (reason: string) => void): { success: boolean } {
  const wrong = violation(SCHEMA, data ?? null);
  if (wrong !== null) throw new BusError('INVALID_ARGUMENTS', wrong, 'engine::workers::register');
  const { name, runtime, version, description, os, isolation, namespace, pid } = (data ?? {}) as Described;
  if (namespace != null && namespace !== NAMESPACE) {
    turnAway(`there is only the namespace "${NAMESPACE}" here`);
    return { success: false };
  }
  Object.assign(worker, {
    ...(name == null || name === '' ? {} : { name }),
    ...(runtime == null ? {} : { runtime }),
    ...(version == null ? {} : { version }),
    ...(description == null ? {} : { description }),
    ...(os == null ? {} : { os }),
    ...(isolation == null ? {} : { isolation }),
    ...(pid == null ? {} : { pid }),
  });
  return { success: true };
}
