import type { JsonValue, OutputContract, Schema } from '#libs/contracts';
import { violation } from '#libs/iii';
import type { Deliverable } from '../machine/decision.js';

/** A fence around the whole text, and nothing else. */
const FENCE = /^\s*```(?:json)?\s*\n([\s\S]*?)\n?```\s*$/;

/** What a final answer hands over under the turn's output contract. A contract that is not met gives the text and why. */
export function deliverableOf(contract: OutputContract, text: string): Deliverable {
  if (contract.type === 'text') return { result: text, result_error: null };
  let value: JsonValue;
  try {
    value = JSON.parse((FENCE.exec(text)?.[1] ?? text).replace(/^\uFEFF/, '')) as JsonValue;
  } catch {
    return { result: text, result_error: 'the answer is not JSON' };
  }
  const wrong = contract.schema === undefined ? null : violation(contract.schema as Schema, value);
  return wrong === null ? { result: value, result_error: null } : { result: text, result_error: `the answer does not meet the schema: ${wrong}` };
}
