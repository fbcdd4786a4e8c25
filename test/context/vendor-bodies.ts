import type { ProviderStreamRequest } from '#libs/contracts';
import { messagesRequest } from '../../libs/local/src/providers/anthropic/request.js';
import { chatBody } from '../../libs/local/src/providers/openai/chat-request.js';
import type { VendorRun } from '../../libs/local/src/providers/shared/provider.js';
import { bodyViolation } from '../support/vendor-schemas.js';

/** What a strict vendor would say against a request; nothing when both take it. */
export function vendorFaults(request: ProviderStreamRequest): string[] {
  const run = (model: string): VendorRun =>
    ({ request: { ...request, model }, model: undefined, api_url: 'http://vendor', max_tokens: 1_000, draft: { warnings: [] } }) as never;
  return [
    bodyViolation('/v1/messages', messagesRequest(run('claude-sonnet-4-5')).body),
    bodyViolation('/v1/chat/completions', chatBody(run('gpt-4o'))),
  ].filter((fault) => fault !== null);
}
