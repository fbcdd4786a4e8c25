import { registerWorker } from 'iii-sdk';

const url = process.env.HARNESS_GATEWAY ?? 'ws://127.0.0.1:49134';
const token = process.env.HARNESS_GATEWAY_TOKEN;

// The SDK says on the console what it does: that goes to standard error, so that standard output is the program's own.
console.log = console.info = console.debug = console.error;

/** Connects a program to the gateway; the SDK connects again by itself whenever the socket drops. */
export function connect(workerName) {
  return registerWorker(url, {
    workerName,
    otel: { enabled: false },
    ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
  });
}

/** Ends the program on Ctrl-C, taking everything back that it has registered. */
export function leaveOnSignal(worker) {
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, async () => {
      await worker.shutdown();
      process.exit(0);
    });
  }
}
