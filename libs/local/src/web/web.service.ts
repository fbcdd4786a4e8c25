import { Inject, Injectable, Optional } from '@nestjs/common';
import type { Response } from 'undici';
import { type ContentBlock, errorMessage } from '#libs/contracts';
import { deadline } from '../confine/deadline.js';
import { CONFINE_SETTINGS, type ConfineSettings, workingDirectorySettings } from '../confine/index.js';
import { decodeText, mediaType, nestingOf, readBody } from './body.js';
import { type Resolve, systemResolve, WEB_RESOLVE } from './connection.js';
import { findWebError, WebError } from './errors.js';
import { assertUrl, fetchChecked, type HopRequest } from './fetch.js';
import { type Page, readPage } from './page.js';

export interface FetchRequest {
  url: string;
  method?: string | null;
  headers?: { [name: string]: string } | null;
  json?: unknown;
  body?: string | null;
  response_format?: 'text' | 'base64' | 'json' | null;
  format?: 'markdown' | 'text' | 'html' | null;
  content_filter?: {
    type: 'pruning' | 'bm25';
    query?: string | null;
    threshold?: number | null;
    min_word_threshold?: number | null;
  } | null;
  target_elements?: string[] | null;
  excluded_tags?: string[] | null;
  include_links?: boolean | null;
  include_media?: boolean | null;
  timeout_ms?: number | null;
  max_bytes?: number | null;
  follow_redirects?: boolean | null;
}
export interface FetchSuccess {
  ok: true;
  status: number;
  status_text: string;
  headers: { [name: string]: string };
  body: string;
  response_format: 'text' | 'base64' | 'json';
  bytes_truncated: boolean;
  json?: unknown;
  parse_error?: string;
  content_type?: string;
  transformed?: 'markdown' | 'text';
  transform_error?: string;
  links?: Page['links'];
  media?: Page['media'];
  page_truncated?: boolean;
  redirect_chain?: string[];
  /** An image, for a model to see. */
  content?: ContentBlock[];
}
export interface FetchFailure {
  ok: false;
  error: string;
  message: string;
}

export const DEFAULT_TIMEOUT_MS = 30_000;
export const MAX_TIMEOUT_MS = 120_000;
/** Bytes of a page that are read when the request names no limit. */
const PAGE_BYTES = 262_144;
/** Larger pages are not transformed. */
const MAX_TRANSFORM_BYTES = 1_048_576;
/** JSON that is nested deeper is not parsed: nothing could store it. */
const MAX_NESTING = 500;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const VISIBLE_IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
/** Headers that belong to the connection and not to the caller. */
const OWN_HEADERS = [
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
  'keep-alive',
  'expect',
  'proxy-connection',
];
const ACCEPT = {
  markdown: 'text/html, text/markdown;q=0.9, */*;q=0.5',
  text: 'text/html, text/plain;q=0.9, */*;q=0.5',
  html: 'text/html, */*;q=0.5',
};

/** Fetches URLs under the limits of `ConfineSettings`. */
@Injectable()
export class WebService {
  private readonly settings: ConfineSettings;
  private readonly resolve: Resolve = systemResolve;

  constructor(
    @Optional() @Inject(CONFINE_SETTINGS) settings: ConfineSettings | undefined,
    @Optional() @Inject(WEB_RESOLVE) resolve?: Resolve,
  ) {
    this.settings = settings ?? workingDirectorySettings;
    if (resolve !== undefined) this.resolve = resolve;
  }

  /** Any response at all is a success; `ok: false` means that there was none. */
  async fetch(request: FetchRequest, signal: AbortSignal): Promise<FetchSuccess | FetchFailure> {
    const timeoutMs = Math.min(request.timeout_ms ?? DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS);
    const time = deadline(signal, timeoutMs);
    const limited = time.signal;
    try {
      const options = {
        follow: request.follow_redirects ?? true,
        values: () => this.settings.current(),
        resolve: this.resolve,
        signal: limited,
      };
      const { value, chain } = await fetchChecked(hopOf(request), options, (response, url) => this.read(response, url, request, limited));
      return chain.length > 0 ? { ...value, redirect_chain: chain } : value;
    } catch (error) {
      if (signal.aborted) return { ok: false, error: 'transport_error', message: 'the call was stopped' };
      if (time.passed) return { ok: false, error: 'timeout', message: `no complete response within ${timeoutMs} ms` };
      const found = findWebError(error);
      if (found === null) throw error;
      return { ok: false, error: found.code, message: found.detail };
    } finally {
      time.end();
    }
  }

  private async read(response: Response, url: URL, request: FetchRequest, signal: AbortSignal): Promise<FetchSuccess> {
    const format = request.format ?? null;
    const ceiling = this.settings.current().max_response_bytes;
    const limit = Math.min(request.max_bytes ?? (format === null ? ceiling : PAGE_BYTES), ceiling);
    const contentType = response.headers.get('content-type');
    const type = mediaType(contentType);
    const image = VISIBLE_IMAGES.has(type) && response.ok && !(format === null && request.response_format === 'base64');
    const { bytes, truncated } = await readBody(response.body as ReadableStream<Uint8Array> | null, image ? ceiling : limit);
    const result: FetchSuccess = {
      ok: true,
      status: response.status,
      status_text: response.statusText,
      headers: Object.fromEntries(response.headers),
      body: '',
      response_format: format === null ? (request.response_format ?? 'text') : 'text',
      bytes_truncated: truncated,
      ...(format !== null && type !== '' ? { content_type: type } : {}),
    };
    if (image && !truncated && bytes.length > 0) {
      const text = `${type}, ${bytes.length} bytes, from ${url.href}`;
      return {
        ...result,
        body: text,
        content_type: type,
        content: [
          { type: 'text', text },
          { type: 'image', data: bytes.toString('base64'), mime: type },
        ],
      };
    }
    if (result.response_format === 'base64') return { ...result, body: bytes.toString('base64') };
    if (bytes.subarray(0, 8_192).includes(0) && !/charset=.?utf-(16|32)/i.test(contentType ?? '')) {
      return { ...result, body: `[${bytes.length} bytes of ${type || 'binary data'}; ask with response_format "base64" to get them]` };
    }
    const text = decodeText(bytes, contentType);
    if (format !== null) return { ...result, ...(await this.page(text, type, url, request, signal)) };
    if (result.response_format !== 'json') return { ...result, body: text };
    if (nestingOf(text) > MAX_NESTING) return { ...result, body: text, parse_error: `it is nested more than ${MAX_NESTING} levels deep` };
    try {
      return { ...result, body: text, json: JSON.parse(text) as unknown };
    } catch (error) {
      return { ...result, body: text, parse_error: errorMessage(error) };
    }
  }

  /** A page that cannot be transformed comes back as it is, with the reason. */
  private async page(html: string, type: string, url: URL, request: FetchRequest, signal: AbortSignal): Promise<Partial<FetchSuccess>> {
    const { format, content_filter: filter } = request;
    const isHtml = type === 'text/html' || type === 'application/xhtml+xml';
    const wantsParts = request.include_links === true || request.include_media === true;
    if (!isHtml || format === null || format === undefined || (format === 'html' && !wantsParts)) return { body: html };
    if (html.length > MAX_TRANSFORM_BYTES)
      return { body: html, transform_error: `the page is larger than ${MAX_TRANSFORM_BYTES} characters` };
    try {
      const page = await readPage(
        {
          html,
          url: url.href,
          format: format === 'html' ? 'text' : format,
          targetElements: request.target_elements ?? [],
          excludedTags: request.excluded_tags ?? [],
          filter:
            filter === null || filter === undefined
              ? null
              : {
                  type: filter.type,
                  query: filter.query ?? '',
                  threshold: filter.threshold ?? undefined,
                  minWords: filter.min_word_threshold ?? undefined,
                },
          links: request.include_links ?? false,
          media: request.include_media ?? false,
        },
        signal,
      );
      return format === 'html' ? { ...page, body: html } : { ...page, transformed: format };
    } catch (error) {
      if (signal.aborted) throw error;
      return { body: html, transform_error: errorMessage(error) };
    }
  }
}

function hopOf(request: FetchRequest): HopRequest {
  if (!URL.canParse(request.url)) throw new WebError('invalid_url', 'url must be absolute, e.g. https://example.org/page');
  const url = new URL(request.url);
  assertUrl(url);
  const method = (request.method ?? 'GET').toUpperCase();
  if (!METHODS.includes(method)) throw new WebError('invalid_payload', `method must be one of ${METHODS.join(', ')}`);
  let headers: Headers;
  try {
    headers = new Headers(request.headers ?? {});
  } catch (error) {
    throw new WebError('invalid_payload', `headers: ${errorMessage(error)}`, { cause: error });
  }
  const own = OWN_HEADERS.find((name) => headers.has(name));
  if (own !== undefined) throw new WebError('invalid_payload', `headers.${own} is set by the connection itself; leave it out`);
  if (!headers.has('user-agent')) headers.set('user-agent', 'harness (web::fetch)');
  if (!headers.has('accept'))
    headers.set('accept', request.format === null || request.format === undefined ? '*/*' : ACCEPT[request.format]);
  if (method === 'GET' || method === 'HEAD') return { url, method, headers, body: null };
  if (request.json === undefined || request.json === null) return { url, method, headers, body: request.body ?? null };
  if (!headers.has('content-type')) headers.set('content-type', 'application/json');
  return { url, method, headers, body: JSON.stringify(request.json) };
}
