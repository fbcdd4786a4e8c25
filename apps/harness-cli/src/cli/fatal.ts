import { errorMessage } from '#libs/contracts';
import { redact } from '../render/redact.js';
import { sanitize } from '../render/sanitize.js';

/** What is said of an error that nothing caught. */
export function fatalText(error: unknown, env: NodeJS.ProcessEnv, debug: boolean): string {
  const stack = debug && error instanceof Error ? `${error.stack ?? ''}\n` : '';
  return sanitize(
    redact(
      `\nerror: ${errorMessage(error)} (cli/internal)\nThis is a fault of harness itself. What was answered is stored; run it again with --debug to see more.\n${stack}`,
      env,
    ),
  );
}
