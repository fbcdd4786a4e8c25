import { type FunctionPolicyInput, HARNESS_CODES, HarnessError } from '#libs/contracts';
import type { TurnOptions } from '../record/record.js';
import { compileGlob, type Glob, globFault } from './glob.js';
import { neverGlobs } from './never.js';

/** Why a call is refused, in words for the model; null when it may run. */
export type Refusal = string | null;

/** The dispatch policy of a turn, compiled. Deny by default: without a matching `allow` nothing runs. */
export interface DispatchPolicy {
  refusal(functionId: string): Refusal;
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

/** Checks and completes the policy of a send; throws `harness/invalid_request` that names the glob. */
export function normalizePolicy(input: FunctionPolicyInput | null | undefined, field: string): TurnOptions['functions'] {
  if (input === null || input === undefined) return null;
  const policy = { allow: input.allow ?? [], deny: input.deny ?? [], expose: input.expose ?? 'agent_trigger' } as const;
  for (const list of ['allow', 'deny'] as const) {
    for (const [index, glob] of policy[list].entries()) {
      const fault = globFault(glob);
      if (fault !== null) throw new HarnessError(HARNESS_CODES.invalidRequest, `${field}.${list}[${index}]: ${fault}`);
    }
  }
  return policy;
}

/** An id without spaces, control and invisible characters: what looks like another id, or reads as one elsewhere, is none. */
const FUNCTION_ID = /^[^\s\p{Cc}\p{Cf}\p{Cs}]{1,300}$/u;

const cache = new WeakMap<object, { lifted: string; policy: DispatchPolicy }>();

/** Compiles a turn's policy; the same options give the same object. */
export function compilePolicy(functions: TurnOptions['functions'], lifted: readonly string[] = []): DispatchPolicy {
  if (functions === null) return DENY_ALL;
  const key = lifted.join('\n');
  const known = cache.get(functions);
  if (known?.lifted === key) return known.policy;
  const policy = build(functions.allow, functions.deny, neverGlobs(lifted));
  cache.set(functions, { lifted: key, policy });
  return policy;
}

const DENY_ALL: DispatchPolicy = {
  allow: [],
  deny: [],
  refusal: (id) => `${id} was not called: this conversation has no function policy, so no function may be called.`,
};

function build(allow: readonly string[], deny: readonly string[], never: readonly Glob[]): DispatchPolicy {
  const allowed = allow.map(compileGlob);
  const denied = deny.map(compileGlob);
  return {
    allow,
    deny,
    refusal: (id) => {
      if (!FUNCTION_ID.test(id)) return `${JSON.stringify(id.slice(0, 200))} was not called: it is not the id of a function.`;
      if (never.some((glob) => glob.matches(id))) return `${id} was not called: it is never open to a model.`;
      const by = denied.find((glob) => glob.matches(id));
      if (by !== undefined) return `${id} was not called: the policy of this conversation denies ${by.source}.`;
      if (!allowed.some((glob) => glob.matches(id))) {
        const open = allow.length === 0 ? 'nothing' : allow.slice(0, 30).join(', ');
        return `${id} was not called: the policy of this conversation allows ${open}.`;
      }
      return null;
    },
  };
}
