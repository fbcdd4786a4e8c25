import {
  errorCode,
  errorMessage,
  HarnessError,
  type Model,
  type ProviderRegistration,
  type ProviderResolution,
  type ProviderStreamRequest,
  type StreamFrame,
  type Usage,
} from '#libs/contracts';
import type { Bus, ChannelWriter, InvocationContext } from '#libs/iii';
import type { ProviderAdapter } from './adapter.js';
import { AssistantDraft, type Outcome } from './draft.js';
import { outcomeOf, VendorFailure } from './failure.js';
import { proxyNote } from './http.js';
import { ToolNames } from './names.js';
import { Redactor } from './redact.js';
import { vendorSchema } from './tool-schema.js';

/** What a vendor's adapter gets for one stream. */
export interface VendorRun {
  request: ProviderStreamRequest;
  /** The catalog's row of the model; undefined when nothing is known of it. */
  model: Model | undefined;
  /** Where to ask and the key to ask with; `api_url` has no slash at its end. */
  api_url: string;
  credential: string;
  /** The router's limit on output, when it has one. */
  max_tokens: number | undefined;
  names: ToolNames;
  draft: AssistantDraft;
  /** Aborted when the consumer is gone or `cancel` was called: the request must end at once. */
  signal: AbortSignal;
  /** Ends the request, e.g. when the vendor keeps a finished answer open. */
  cancel: () => void;
  /** Passes on a keep-alive of the vendor. */
  ping(): void | Promise<void>;
}

/** What differs between vendors. */
export interface Vendor {
  id: string;
  display_name: string;
  credential_env_var: string;
  /** The vendor's own address; other addresses may be asked without a key. */
  official_url: string;
  models: readonly Model[];
  /** Streams one answer into `run.draft`; resolves at the vendor's terminal event, throws for anything else. */
  generate(run: VendorRun): Promise<Outcome>;
  /** Asks the vendor which models there are. */
  list(at: { api_url: string; credential: string }): Promise<Model[]>;
}

const RESOLVE_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 20_000;
/** Codes of a router that does not know this registration. */
const FORGOTTEN = new Set(['router/unknown_provider', 'router/invalid_request']);
/** Stands for a key where a server needs none. */
const NO_KEY = 'none';

/** Everything of a provider that is the same for all vendors: registration, credentials, life cycle of a stream, errors. */
export class VendorProvider implements ProviderAdapter {
  private token: string | undefined;

  constructor(
    private readonly bus: Bus,
    private readonly vendor: Vendor,
  ) {}

  get id(): string {
    return this.vendor.id;
  }

  async register(bus: Bus): Promise<void> {
    const { id, display_name, credential_env_var, official_url, models } = this.vendor;
    const registration: ProviderRegistration = {
      id,
      display_name,
      credential_env_var,
      defaults: { api_url: official_url },
      supports_model_listing: true,
      models: [...models],
    };
    const answer = await bus.trigger<{ registration_token?: string | null } | null>({
      function_id: 'router::provider::register',
      payload: registration,
      timeoutMs: RESOLVE_TIMEOUT_MS,
    });
    this.token = answer?.registration_token ?? undefined;
  }

  /** Runs one stream. All failures reach the consumer as one terminal `error` frame; `ok` is false then. */
  async stream(request: ProviderStreamRequest, context: InvocationContext): Promise<{ ok: boolean }> {
    const writer = this.bus.openWriter(request.writer_ref);
    const signal = AbortSignal.any([writer.signal, context.signal]);
    const own = new AbortController();
    const model = request.model_meta ?? this.vendor.models.find((row) => row.id === request.model);
    const frames = new FrameWriter(writer);
    const wrapped = new Set((request.tools ?? []).filter((tool) => vendorSchema(tool.parameters).wrapped).map((tool) => tool.name));
    const draft = new AssistantDraft({
      provider: this.id,
      model: request.model,
      timestamp: Date.now(),
      send: (frame) => frames.send(frame),
      decodeArguments: (functionId, value) => (wrapped.has(functionId) ? unwrap(value) : value),
      priced: (usage) => priced(usage, model),
    });
    let secret: string | null = null;
    const finish = (outcome: Outcome): Promise<{ ok: boolean }> => {
      const { error_message } = outcome;
      return frames.end(
        draft,
        error_message === undefined ? outcome : { ...outcome, error_message: new Redactor([secret]).clean(error_message) },
      );
    };
    let url = this.vendor.official_url;
    try {
      const resolution = await this.resolve();
      secret = resolution.credential;
      url = this.urlOf(resolution);
      const { tools, messages } = request;
      const at = { api_url: url, credential: this.keyOf(resolution, url), max_tokens: resolution.max_tokens };
      signal.throwIfAborted();
      const outcome = await this.vendor.generate({
        request,
        model,
        draft,
        ...at,
        names: new ToolNames(tools ?? [], messages),
        signal: AbortSignal.any([signal, own.signal]),
        cancel: () => own.abort(),
        ping: () => frames.send({ type: 'ping' }),
      });
      signal.throwIfAborted();
      return await finish(outcome);
    } catch (error) {
      return await finish(signal.aborted ? { stop_reason: 'aborted' } : outcomeOf(error, this.vendor.display_name, proxyNote(url)));
    } finally {
      frames.stop();
      writer.close();
    }
  }

  /** Replaces the router's catalog of this provider by what the vendor lists; by the built-in one when it has no key. */
  async refreshModels(): Promise<{ ok: boolean; count: number }> {
    const resolution = await this.resolve();
    const url = this.urlOf(resolution);
    const asked = resolution.credential !== null || url !== this.vendor.official_url;
    const models = asked ? await this.listed(url, resolution) : [...this.vendor.models];
    const { count } = await this.bus.trigger<{ count: number }>({
      function_id: 'router::models::reconcile',
      payload: { provider: this.id, ...this.proof(), models },
      timeoutMs: RESOLVE_TIMEOUT_MS,
    });
    return { ok: true, count };
  }

  private async listed(url: string, resolution: ProviderResolution): Promise<Model[]> {
    try {
      return await this.vendor.list({ api_url: url, credential: resolution.credential ?? NO_KEY });
    } catch (error) {
      const { error_message } = outcomeOf(error, this.vendor.display_name, proxyNote(url));
      throw new HarnessError('provider/listing_failed', new Redactor([resolution.credential]).clean(error_message ?? errorMessage(error)));
    }
  }

  /** Asks the router for key and address. A router that has forgotten this provider, e.g. after its own restart, is told again. */
  private async resolve(): Promise<ProviderResolution> {
    const ask = (): Promise<ProviderResolution> =>
      this.bus.trigger<ProviderResolution>({
        function_id: 'router::provider::resolve',
        payload: { id: this.id, ...this.proof() },
        timeoutMs: RESOLVE_TIMEOUT_MS,
      });
    try {
      return await ask();
    } catch (error) {
      if (!FORGOTTEN.has(errorCode(error) ?? '')) throw error;
      await this.register(this.bus);
      return await ask();
    }
  }

  private proof(): { token?: string } {
    return this.token === undefined ? {} : { token: this.token };
  }

  private urlOf(resolution: ProviderResolution): string {
    return (resolution.api_url || this.vendor.official_url).replace(/\/+$/, '');
  }

  private keyOf(resolution: ProviderResolution, url: string): string {
    if (resolution.credential) return resolution.credential;
    if (url !== this.vendor.official_url) return NO_KEY;
    throw new VendorFailure('auth_expired', `no key is configured; set ${this.vendor.credential_env_var}`);
  }
}

/** Sends frames in order, keeps an idle stream alive, and ends it with exactly one terminal frame. */
class FrameWriter {
  private lastSent = Date.now();
  private ended = false;
  private readonly timer: NodeJS.Timeout;

  constructor(private readonly writer: ChannelWriter) {
    this.timer = setInterval(() => this.keepAlive(), KEEP_ALIVE_MS);
    this.timer.unref();
  }

  send(frame: StreamFrame): void | Promise<void> {
    this.lastSent = Date.now();
    return this.writer.send(frame);
  }

  async end(draft: AssistantDraft, outcome: Outcome): Promise<{ ok: boolean }> {
    const { stop_reason, error_kind, error_message, retry_after_ms } = outcome;
    const failed = stop_reason === 'error';
    if (this.ended || this.writer.signal.aborted) return { ok: !failed };
    if (!failed) await draft.start();
    if (draft.started) await draft.end(stop_reason === 'error' || stop_reason === 'aborted');
    this.ended = true;
    const message = draft.message(outcome);
    if (draft.started)
      await this.send({ type: 'stop', stop_reason: message.stop_reason, ...(failed ? { error_kind, error_message } : {}) });
    if (stop_reason !== 'error') await this.send({ type: 'done', message });
    else await this.send({ type: 'error', error: message, ...(retry_after_ms === undefined ? {} : { retry_after_ms }) });
    return { ok: !failed };
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private keepAlive(): void {
    if (this.ended || Date.now() - this.lastSent < KEEP_ALIVE_MS / 2) return;
    // Not waited for: a reader that is behind needs no sign of life, and one that is gone is seen by the signal.
    void Promise.resolve(this.writer.send({ type: 'ping' })).catch(() => undefined);
  }
}

/** Takes the arguments out of the object that stood for a schema which is none. */
function unwrap<T>(value: T): T {
  return typeof value === 'object' && value !== null && 'value' in value && Object.keys(value).length === 1 ? (value.value as T) : value;
}

/** Adds `cost_usd` when the model's prices are known. */
function priced(usage: Usage, model: Model | undefined): Usage {
  const prices = model?.pricing;
  if (prices === undefined) return usage;
  const { input = 0, output = 0, cache_read = 0, cache_write = 0 } = usage;
  const dollars =
    (input ?? 0) * prices.input +
    (output ?? 0) * prices.output +
    (cache_read ?? 0) * (prices.cache_read ?? prices.input) +
    (cache_write ?? 0) * (prices.cache_write ?? prices.input);
  return { ...usage, cost_usd: Math.round(dollars * 1_000) / 1e9 };
}
