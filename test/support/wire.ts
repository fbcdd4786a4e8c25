import { readFileSync } from 'node:fs';
import type { HookPoint } from '#libs/contracts';

export { withoutDescriptions } from '#libs/conformance';

/** A function or trigger type as the contract publishes it. */
export interface Published {
  name: string;
  request_schema?: unknown;
  response_schema?: unknown;
  invocation_schema?: unknown;
  [other: string]: unknown;
}

/** The contract of the harness: its functions and trigger types. */
export const wire = JSON.parse(readFileSync(new URL('../fixtures/wire/harness.json', import.meta.url), 'utf8')) as {
  functions: Published[];
  triggers: Published[];
};

interface Shape {
  required: string[];
  optional: string[];
}

/** What the contract says beside its schemas: ids, payloads of events and hooks, codes, what no model reaches, defaults. */
export const facts = JSON.parse(readFileSync(new URL('../fixtures/wire/facts.json', import.meta.url), 'utf8')) as {
  ids: { session: string; turn: string };
  entries: { [entry in 'assistant' | 'result' | 'idempotent' | 'nudge' | 'error']: string };
  request_id: string;
  events: { [type: string]: Shape };
  parent: string[];
  hooks: { envelope: Shape } & { [point in HookPoint]: { type: string; part?: string; fields?: string[] } };
  errors: {
    [error in 'a role that may not be sent' | 'a request that does not meet its schema' | 'a child too deep' | 'a child too many']: string;
  };
  never: string[];
  allowed: string[];
  defaults: { max_children: number; system_prompt_strategy: string; expose: string };
};
