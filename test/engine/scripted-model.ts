import { randomUUID } from 'node:crypto';
import type { JsonValue, ProviderStreamRequest } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import { asks, call, type Generation, GenerationStream, says } from '../../libs/conformance/src/generations.js';

/** A model of a test, over a bus: it plays generations one after the other. */
export class ScriptedModel {
  readonly provider = `scripted-${randomUUID().slice(0, 8)}`;
  private readonly script: Generation[] = [];

  constructor(private readonly bus: Bus) {}

  /** Registers the provider, and registers it anew whenever a router says that it is ready. */
  async offer(): Promise<void> {
    const { bus, provider } = this;
    bus.registerFunction({ id: `provider::${provider}::stream` }, async (payload) => {
      const stream = new GenerationStream(bus.openWriter((payload as ProviderStreamRequest).writer_ref), provider, 'scripted');
      const next = this.script.shift();
      if (next === undefined) await stream.fail('nothing is scripted');
      else await next(payload as ProviderStreamRequest, stream);
      stream.close();
      return { ok: true };
    });
    bus.registerFunction({ id: `${provider}::announce` }, async () => {
      await this.register();
      return null;
    });
    bus.registerTrigger({ type: 'router::ready', function_id: `${provider}::announce`, config: {} });
    await this.register();
  }

  plays(...generations: readonly Generation[]): void {
    this.script.push(...generations);
  }

  says(text: string): Generation {
    return says(text);
  }

  /** Makes one call, whose id is `fc_one`. */
  asks(functionId: string, payload: JsonValue): Generation {
    return asks(call('fc_one', functionId, payload));
  }

  /** Streams a text and never ends by itself. */
  streams(text: string): Generation {
    return async (_request, stream) => {
      await stream.start();
      await stream.text(text);
      await new Promise<void>((resolve) => stream.signal.addEventListener('abort', () => resolve(), { once: true }));
    };
  }

  /** The payload of a send to this model. */
  send(session_id: string, message: string, allow: readonly string[] = []): object {
    return { session_id, message, model: 'scripted', provider: this.provider, options: { functions: { allow } } };
  }

  private async register(): Promise<void> {
    const models = [{ id: 'scripted', provider: this.provider, context_window: 200_000, max_output_tokens: 8_000, supports_tools: true }];
    await this.bus.trigger({ function_id: 'router::provider::register', payload: { id: this.provider, models } });
  }
}
