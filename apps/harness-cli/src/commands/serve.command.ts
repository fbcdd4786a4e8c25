import { errorCode, errorMessage, type Model } from '#libs/contracts';
import type { EmbeddedRuntime, OpenRuntimeOptions } from '#libs/local';
import type { Service } from '#libs/service';
import type { FeedEvent } from '#libs/turn';
import { HarnessCommand } from '../cli/command.js';
import { Command, Help } from '../cli/decorators.js';
import { BY_SIGNAL, EXIT, type ExitCode } from '../cli/exit.js';
import { sanitizeLine } from '../render/sanitize.js';
import { Interrupts } from '../turn/interrupts.js';

/** How long running steps may take to end after the first signal, in ms. */
const GRACE_MS = 10_000;
/** How long closing may take after the second, in ms. */
const HURRY_MS = 2_000;

type Log = NonNullable<OpenRuntimeOptions['log']>;

/** One line of what can be asked for. */
async function logModels({ bus }: EmbeddedRuntime, log: Log): Promise<void> {
  const { models } = await bus.trigger<{ models: Model[] }>({ function_id: 'router::models::list', payload: {} });
  const shown = models.slice(0, 20).map(({ provider, id }) => `${provider}/${id}`);
  log('info', 'models', { count: models.length, models: shown.join(', ') });
}

/** One line for each turn that ends here, and for what a person should know before. */
function logTurn(event: FeedEvent, log: Log): void {
  if (event.type === 'notice') log('info', event.text, { session_id: event.session_id, turn_id: event.turn_id });
  if (event.type !== 'turn_finished') return;
  const { session_id, turn_id, trace_id, status, reason, steps, calls, duration_ms, totals } = event;
  const { input_tokens, output_tokens } = totals;
  const failed = status === 'failed' ? { reason, error: event.result_error } : {};
  log(status === 'failed' ? 'warn' : 'info', `turn ${status}`, {
    session_id,
    turn_id,
    trace_id,
    steps,
    calls,
    input_tokens,
    output_tokens,
    duration_ms,
    ...failed,
  });
}

/** `serve`: the worker in the foreground. */
@Command({ name: 'serve', description: 'Run the worker in the foreground: every turn of the data folder' })
export class ServeCommand extends HarnessCommand {
  @Help('after')
  examples(): string {
    return `
Goes on with what other processes have left behind, and takes what \`send --no-wait\` stores. Logs go to standard error, a line for each turn, as JSON
unless that is a terminal. SIGTERM or Ctrl-C: takes no new step, gives running ones ${GRACE_MS / 1000} s, hands the rest back and exits with 0; a second
one does not wait, a third leaves at once.

With --url or III_URL it is a worker of the iii engine there, instead of an engine of its own.

Examples:
  harness-cli serve --data-dir ./data
  HARNESS_SIBLINGS=all harness-cli serve --url ws://127.0.0.1:49134`;
  }

  protected async execute(): Promise<ExitCode> {
    const { cli } = this;
    const { workerLog } = await import('../serve/worker-log.js');
    const [{ gatewaySettings }, { serviceSettings, startService }] = await Promise.all([import('#libs/iii'), import('#libs/service')]);
    const gateway = gatewaySettings(cli.io.env);
    const http = serviceSettings(cli.io.env);
    const { log, hide } = workerLog(cli.stderr, cli.err, cli.io.env, cli.global.debug === true);
    const engine = cli.url('worker');
    const opening = new AbortController();
    let signalled: (signal: string) => void = () => undefined;
    const first = new Promise<string>((resolve) => {
      signalled = resolve;
    });
    let hurry: () => void = () => undefined;
    const interrupts = new Interrupts(cli.io.signals, (signal, times) => {
      if (times === 1) {
        signalled(signal);
        opening.abort();
      }
      if (times === 2) hurry();
      if (times > 1) setTimeout(() => cli.io.exit(BY_SIGNAL[signal]), times > 2 ? 0 : HURRY_MS).unref();
    });
    let service: Service | null = null;
    // Before any step runs, so that turns which are taken over at the start are told of and counted like any other.
    const prepare = async (runtime: EmbeddedRuntime): Promise<void> => {
      const { feed, vitals } = runtime;
      hide(() => runtime.secrets?.() ?? []);
      feed.subscribe((event) => logTurn(event, log));
      if (http !== null && vitals !== undefined) service = await startService(vitals, feed, http);
    };
    try {
      return await cli.withRuntime(
        'worker',
        async (runtime) => {
          const { dataDir, gatewayUrl } = runtime;
          const place = engine === undefined ? 'gateway' : 'engine';
          log('info', 'ready', { data_dir: dataDir, pid: process.pid, [place]: gatewayUrl, health: service?.url });
          cli.print(
            `${cli.name} is ready: data folder ${sanitizeLine(dataDir)}, process ${process.pid}, ${place} ${gatewayUrl ?? 'none'}, health ${service?.url ?? 'none'}`,
          );
          logModels(runtime, log).catch((error: unknown) => log('warn', 'the models could not be listed', { error: errorMessage(error) }));
          const signal = await Promise.race(runtime.ended === undefined ? [first] : [first, runtime.ended]);
          log('info', 'draining', { signal, grace_ms: GRACE_MS });
          hurry = () => {
            log('warn', 'not waiting for running steps', {});
            void runtime.close(0);
          };
          await runtime.close(GRACE_MS);
          log('info', 'stopped', {});
          return EXIT.ok;
        },
        { log, gateway, prepare, signal: opening.signal },
      );
    } catch (error) {
      if (errorCode(error) !== 'harness/stopped') throw error;
      log('info', 'stopped', { error: errorMessage(error) });
      return EXIT.ok;
    } finally {
      await (service as Service | null)?.close();
      interrupts.close();
    }
  }
}
