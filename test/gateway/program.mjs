// Programs of tests, as anybody could write them with the iii-sdk: each does one thing and tells of it, a JSON line at a time.
import { registerWorker } from 'iii-sdk';

console.debug = console.log = () => undefined; // where the SDK says what it does
const [url, role, detail = ''] = process.argv.slice(2);
const worker = registerWorker(url, { workerName: `program-${role}`, reconnectionConfig: { initialDelayMs: 100, maxDelayMs: 300 } });
const tell = (event, data = null) => process.stdout.write(`${JSON.stringify({ event, data })}\n`);
const forever = () => new Promise(() => undefined);

const roles = {
  /** Calls every harness function that a model calls in turn. */
  function: () => {
    worker.registerFunction('far::run', async (payload, metadata) => {
      tell('called', { payload, metadata });
      return detail === 'hang' ? await forever() : { far: true };
    });
    worker.registerFunction('far::nested', async () => await worker.trigger({ function_id: 'local::seen', payload: {} }));
  },
  hook: () => {
    worker.registerFunction('far::hook', async ({ call }) => {
      tell('asked', call.function_id);
      if (detail === 'hang') return await forever();
      if (detail === 'mutate') return { decision: 'continue', mutations: { arguments: { changed: true } } };
      if (detail === 'deny') return { decision: 'deny', reason: 'the program says no' };
      return { decision: detail };
    });
    worker.registerTrigger({
      type: 'harness::hook::pre-trigger',
      function_id: 'far::hook',
      config: { functions: ['probe::*', 'far::run'], timeout_ms: 2_000 },
    });
  },
  consumer: () => {
    worker.registerFunction('far::on-end', async (event) => {
      tell('ended', event.turn_id);
      return detail === 'hang' ? await forever() : {};
    });
    worker.registerTrigger({ type: 'harness::turn-completed', function_id: 'far::on-end', config: {} });
  },
  provider: () => {
    worker.registerFunction('provider::far::stream', async ({ writer_ref }) => {
      for (const frame of [{ type: 'start' }, { type: 'text_start' }, { type: 'text_delta', delta: 'I th' }]) {
        writer_ref.sendMessage(JSON.stringify(frame));
      }
      tell('streaming');
      return await forever();
    });
    worker.registerFunction('far::announce', async () => {
      const models = [{ id: 'far-1', provider: 'far', context_window: 100_000, max_output_tokens: 8_000 }];
      await worker.trigger({ function_id: 'router::provider::register', payload: { id: 'far', display_name: 'Far', models } });
      tell('announced');
      return null;
    });
    worker.registerTrigger({ type: 'router::ready', function_id: 'far::announce', config: {} });
  },
  /** Calls a function of its own again and again, and tells how that goes. */
  steady: () => {
    worker.registerFunction('steady::echo', async (payload) => payload);
    let calls = 0;
    let slowest_ms = 0;
    const failures = [];
    const call = async () => {
      const begun = performance.now();
      try {
        const { n } = await worker.trigger({ function_id: 'steady::echo', payload: { n: calls } });
        if (n !== calls) failures.push(`sent ${calls}, got ${n}`);
      } catch (error) {
        failures.push(String(error));
      }
      calls += 1;
      slowest_ms = Math.max(slowest_ms, Math.round(performance.now() - begun));
      setTimeout(call, 5);
    };
    void call();
    setInterval(() => {
      tell('steady', { calls, slowest_ms, failures: failures.splice(0) });
      slowest_ms = 0;
    }, 100);
  },
  sibling: () => {
    worker.registerFunction('state::get', async ({ key }) => (detail === 'hang' ? await forever() : { mine: key, by: process.pid }));
  },
};
roles[role]();
await worker.trigger({ function_id: 'engine::workers::list', payload: {} });
tell('ready');
