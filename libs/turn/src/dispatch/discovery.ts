import type { JsonValue } from '#libs/contracts';
import type { DispatchPolicy } from '../policy/policy.js';

const objectOf = (value: JsonValue | undefined): { [key: string]: JsonValue } | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null;

/** What a model may see of a discovery result: functions that its policy refuses are left out. */
export function filterDiscovery(functionId: string, value: JsonValue, policy: DispatchPolicy): JsonValue {
  const open = (row: JsonValue): boolean => {
    const id = objectOf(row)?.['function_id'];
    return typeof id === 'string' && policy.refusal(id) === null;
  };
  const body = objectOf(value);
  if (body === null) return value;
  if (functionId === 'engine::functions::list') {
    const rows = body['functions'];
    return Array.isArray(rows) ? { ...body, functions: rows.filter(open) } : value;
  }
  if (functionId !== 'engine::functions::info') return value;
  const rows = body['functions'];
  if (!Array.isArray(rows)) return open(body) ? body : null;
  const hidden = (row: JsonValue): JsonValue => ({ function_id: objectOf(row)?.['function_id'] ?? null, error: 'not available' });
  return { ...body, functions: rows.map((row) => (open(row) ? row : hidden(row))) };
}
