import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { withoutDescriptions } from '../../../../test/support/wire.js';
import { type ApprovalFunctionId, approvalFunctions, approvalTriggers } from './schemas.js';

interface Published {
  name: string;
  request_schema?: unknown;
  response_schema?: unknown;
  call_request_schema?: unknown;
}
const wire = JSON.parse(readFileSync(new URL('../../../../test/fixtures/wire/approval.json', import.meta.url), 'utf8')) as {
  functions: Published[];
  triggers: Published[];
};

describe('approval::*', () => {
  it.each(wire.functions)('$name has the schemas of the contract', ({ name, request_schema, response_schema }) => {
    const { request, response, description } = approvalFunctions[name as ApprovalFunctionId];
    expect(withoutDescriptions(request)).toEqual(request_schema);
    expect(withoutDescriptions(response)).toEqual(response_schema);
    expect(description).toMatch(/\w+ \w+/);
  });

  it.each(wire.triggers)('$name tells what the contract says', ({ name, call_request_schema }) => {
    expect(withoutDescriptions(approvalTriggers[name as keyof typeof approvalTriggers].call_request_format)).toEqual(call_request_schema);
  });

  it('is all there, and no more', () => {
    expect(Object.keys(approvalFunctions).sort()).toEqual(wire.functions.map(({ name }) => name));
    expect(Object.keys(approvalTriggers)).toEqual(wire.triggers.map(({ name }) => name));
  });
});
