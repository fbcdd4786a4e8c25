import { errorMessage, type Model, type ProviderStreamRequest } from '#libs/contracts';
import type { Bus, ChannelWriter, Registration } from '#libs/iii';
import { type Generation, GenerationStream } from './generations.js';

/** What the model of one scenario does, and what was asked of it. */
export class Script {
  /** The requests that it got, in order. */
  readonly requests: ProviderStreamRequest[] = [];
  /** Answers instead of the script where it gives a generation. */
  apart: ((request: ProviderStreamRequest) => Generation | null) | undefined;
  private readonly script: Generation[] = [];

  constructor(
    readonly provider: string,
    readonly model: string,
  ) {}

  /** Adds generations to the script. */
  plays(...generations: readonly Generation[]): void {
    this.script.push(...generations);
  }

  /** Generates for one request; one that nobody scripted is an error. */
  async generate(request: ProviderStreamRequest, writer: ChannelWriter): Promise<void> {
    this.requests.push(request);
    const next = this.apart?.(request) ?? this.script.shift();
    const stream = new GenerationStream(writer, this.provider, this.model);
    try {
      if (next === undefined) await stream.fail('the conformance run has scripted no generation for this request');
      else await next(request, stream);
    } catch (error) {
      await stream.fail(errorMessage(error));
    } finally {
      stream.close();
    }
  }
}

/** A provider of scripted models, one for each scenario. */
export class ScriptedProvider {
  private readonly scripts = new Map<string, Script>();
  private readonly stream: Registration;
  private token: string | undefined;

  constructor(
    private readonly bus: Bus,
    readonly id: string,
  ) {
    this.stream = bus.registerFunction(
      { id: this.streamId, description: 'A model of the conformance run.', metadata: { internal: true } },
      async (payload) => {
        const request = payload as ProviderStreamRequest;
        const script = this.scripts.get(request.model);
        if (script === undefined) throw new Error(`there is no model ${request.model}`);
        await script.generate(request, bus.openWriter(request.writer_ref));
        return { ok: true };
      },
    );
  }

  get streamId(): string {
    return `provider::${this.id}::stream`;
  }

  /** Offers the models of these scenarios to the router. */
  async offer(models: readonly ({ id: string } & Partial<Model>)[]): Promise<void> {
    const rows = models.map(
      (model): Model => ({ context_window: 200_000, max_output_tokens: 8_000, supports_tools: true, ...model, provider: this.id }),
    );
    for (const { id } of rows) this.scripts.set(id, new Script(this.id, id));
    const { registration_token } = await this.bus.trigger<{ registration_token?: string }>({
      function_id: 'router::provider::register',
      payload: { id: this.id, display_name: 'Conformance run', models: rows },
    });
    this.token = registration_token;
  }

  /** The script of a scenario's model. */
  of(model: string): Script {
    const script = this.scripts.get(model) ?? new Script(this.id, model);
    this.scripts.set(model, script);
    return script;
  }

  /** Takes the models out of the catalog, where they were offered, and the provider's function back. */
  async withdraw(): Promise<void> {
    try {
      if (this.token === undefined) return;
      const payload = { provider: this.id, token: this.token, models: [] };
      await this.bus.trigger({ function_id: 'router::models::reconcile', payload });
    } finally {
      this.stream.unregister();
    }
  }
}
