import type { JsonValue, OutputContract } from '#libs/contracts';
import type { Deliverable } from '../machine/decision.js';
import { valueFault } from './contract.js';

/** A fence around the whole text, whether closed or not, and nothing else. */
const FENCE = /^\s*```(?:json)?[ \t]*\r?\n([\s\S]*?)(?:\r?\n[ \t]*```\s*)?$/;

/** What a final answer hands over under the turn's output contract. A contract that is not met gives the text and why. */
export function deliverableOf(contract: OutputContract, text: string): Deliverable {
  if (contract.type === 'text') return { result: text, result_error: null };
  const bare = text.replace(/^\uFEFF/, '');
  let value: JsonValue;
  try {
    value = JSON.parse(FENCE.exec(bare)?.[1] ?? bare) as JsonValue;
  } catch {
    return { result: text, result_error: text.trim() === '' ? 'the answer is empty' : 'the answer is not one JSON value and nothing else' };
  }
  const wrong = valueFault(contract, value);
  return wrong === null ? { result: value, result_error: null } : { result: text, result_error: wrong };
}
