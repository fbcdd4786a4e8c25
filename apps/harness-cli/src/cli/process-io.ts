import type { CliIo } from './cli.js';
import { openRuntime } from './open-runtime.js';

/** The real process as the CLI sees it. Errors that nobody caught end it with a message and no stack trace, unless --debug is given. */
export function processIo(): CliIo {
  const onFatal = (error: unknown): void => {
    void import('./fatal.js').then(({ fatalText }) => {
      process.stderr.write(fatalText(error, process.env, process.argv.includes('--debug')), () => process.exit(1));
    });
  };
  process.on('uncaughtException', onFatal);
  process.on('unhandledRejection', onFatal);
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    signals: process,
    keyboard: async () => (await import('../approval/keyboard.js')).keyboardOf(process.stdin, process.stderr),
    openRuntime,
    exit: (code) => process.exit(code),
    now: Date.now,
    asWorker: process.argv[1] === 'harness',
  };
}
