import { Controller, Inject } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import type { Schema } from '#libs/contracts';
import { IiiFunction, type InvocationContext } from '#libs/iii';
import { WebError } from './errors.js';
import { type FetchFailure, type FetchRequest, type FetchSuccess, WebService } from './web.service.js';

const selectors = (description: string): Schema => ({
  type: ['array', 'null'],
  items: { type: 'string', maxLength: 500 },
  maxItems: 50,
  default: null,
  description,
});

const request: Schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  required: ['url'],
  examples: [{ url: 'https://example.org/docs', format: 'markdown' }],
  properties: {
    url: { type: 'string', maxLength: 8_192, description: 'An absolute http or https URL.' },
    method: { type: ['string', 'null'], default: 'GET', description: 'GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS.' },
    headers: { type: ['object', 'null'], additionalProperties: { type: 'string' }, default: null },
    json: { description: 'Sent as a JSON body; wins over body.' },
    body: { type: ['string', 'null'], default: null, description: 'Sent as it is; not with GET and HEAD.' },
    response_format: {
      enum: ['text', 'base64', 'json', null],
      default: 'text',
      description: 'How the body comes back; json also parses it. Not used with format.',
    },
    format: {
      enum: ['markdown', 'text', 'html', null],
      default: null,
      description: 'Reads a page: markdown is best for reading, html is the page as it is.',
    },
    content_filter: {
      type: ['object', 'null'],
      required: ['type'],
      description: 'With format: keeps the main parts only. `pruning` drops link lists and scraps, `bm25` keeps what is about query.',
      properties: {
        type: { enum: ['pruning', 'bm25'], type: 'string' },
        query: { type: ['string', 'null'], maxLength: 1_000 },
        threshold: { type: ['number', 'null'] },
        min_word_threshold: { type: ['integer', 'null'] },
      },
    },
    target_elements: selectors('With format: CSS selectors of the only parts to keep.'),
    excluded_tags: selectors('With format: CSS selectors of parts to drop.'),
    include_links: { type: ['boolean', 'null'], default: false, description: 'With format: lists the links of the page.' },
    include_media: { type: ['boolean', 'null'], default: false, description: 'With format: lists images, videos and audios.' },
    timeout_ms: { type: ['integer', 'null'], minimum: 1, default: 30_000, description: 'At most 120000.' },
    max_bytes: {
      type: ['integer', 'null'],
      minimum: 1,
      default: null,
      description: 'A longer body is cut; 262144 with format, otherwise 5242880.',
    },
    follow_redirects: { type: ['boolean', 'null'], default: true, description: 'At most 5 are followed.' },
  },
};
const response: Schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  required: ['ok'],
  properties: {
    ok: { type: 'boolean', description: 'True for any response, also 404 and 500; false when there was none.' },
    status: { type: 'integer' },
    status_text: { type: 'string' },
    headers: { type: 'object', additionalProperties: { type: 'string' } },
    body: { type: 'string' },
    json: true,
    parse_error: { type: 'string' },
    response_format: { type: 'string' },
    bytes_truncated: { type: 'boolean' },
    redirect_chain: { type: 'array', items: { type: 'string' } },
    content_type: { type: 'string' },
    transformed: { type: 'string' },
    transform_error: { type: 'string' },
    links: { type: 'object' },
    media: { type: 'object' },
    page_truncated: { type: 'boolean', description: 'True when text, links or media of a page were cut.' },
    content: { type: 'array', description: 'An image as content blocks.' },
    error: { type: 'string', description: 'invalid_payload, invalid_url, blocked_host, timeout, too_many_redirects or transport_error.' },
    message: { type: 'string' },
  },
};

/** The `web::*` functions. */
@Controller()
export class WebController {
  constructor(@Inject(WebService) private readonly web: WebService) {}

  @IiiFunction({
    id: 'web::fetch',
    description:
      'Fetches a URL. To read a page use format "markdown"; for an API use response_format "json". Images come back as images. Private and local addresses are refused. ' +
      'ok: false means that there was no response and `error` says why; an HTTP error status is a response. ' +
      'Examples: {"url": "https://example.org/docs", "format": "markdown"}; {"url": "https://api.example.org/items", "method": "POST", "json": {"name": "a"}, "response_format": "json"}.',
    request,
    response,
    invalid: (detail) => new WebError('invalid_payload', detail),
  })
  fetch(@Payload() payload: FetchRequest, @Ctx() context: InvocationContext): Promise<FetchSuccess | FetchFailure> {
    return this.web.fetch(payload, context.signal);
  }
}
