import type { JsonValue } from '#libs/contracts';
import type { Cli } from '../cli/cli.js';
import { sanitize } from '../render/sanitize.js';
import type { Keyboard } from './keyboard.js';
import type { PendingCall } from './pending.js';
import { Question } from './question.js';

/** What a person answered. `none`: the call was settled elsewhere, or the turn is being stopped. */
export type Answer = { kind: 'allow'; always: boolean } | { kind: 'deny'; reason: string | null } | { kind: 'none' };

/** Keys that were pressed before the question could be read are not its answer: it waits for this much silence, in ms. */
const SILENCE_MS = 250;
const REASON_CHARS = 500;
const CTRL_C = '\u0003';
const ESCAPE = '\u001b';

/**
 * Asks about one call on the terminal. Nothing else is written there meanwhile. The answer is one key, pressed alone after
 * the question was drawn: what was typed ahead is dropped, what is pasted is none.
 */
export async function askAbout(cli: Cli, keyboard: Keyboard, call: PendingCall, args: JsonValue, signal: AbortSignal): Promise<Answer> {
  if (signal.aborted) return { kind: 'none' };
  const resume = cli.screen.pause();
  const write = (text: string): void => cli.stderr.write(text);
  const question = new Question(call, args, cli.stderr.columns, cli.err);
  write(`${question.opening().join('\n')}\n${question.choices()}`);
  let release: () => void = () => undefined;
  let silence: NodeJS.Timeout | undefined;
  try {
    return await new Promise<Answer>((answer) => {
      let listening = false;
      let reason: string | null = null;
      const quiet = (): void => {
        clearTimeout(silence);
        silence = setTimeout(() => {
          listening = true;
        }, SILENCE_MS);
      };
      const finish = (said: string, given: Answer): void => {
        write(`${said}\n`);
        answer(given);
      };
      const choose = (key: string): void => {
        const { green, red } = cli.err;
        if (key === 'y') finish(green('yes'), { kind: 'allow', always: false });
        else if (key === 'a') finish(green('always in this session'), { kind: 'allow', always: true });
        else if (key === 'n') finish(red('no'), { kind: 'deny', reason: null });
        else if (key === 'v' && question.hasMore) write(`\n${question.more().join('\n')}\n${question.choices()}`);
        else if (key === 'r') {
          reason = '';
          write('\nwhy not (Enter ends it, Esc goes back): ');
        }
      };
      const edit = (before: string, keys: string): void => {
        reason = before;
        for (const key of keys === ESCAPE ? [ESCAPE] : keys) {
          if (key === '\r' || key === '\n') {
            finish('', { kind: 'deny', reason: reason.trim() === '' ? null : reason });
            return;
          }
          if (key === ESCAPE) {
            reason = null;
            write(`\n${question.choices()}`);
            return;
          }
          if (key === '\u007f' || key === '\b') {
            if (reason !== '') write('\b \b');
            reason = [...reason].slice(0, -1).join('');
          } else if (key >= ' ' && reason.length < REASON_CHARS) {
            reason += key;
            write(sanitize(key));
          }
        }
      };
      const onKeys = (keys: string): void => {
        if (keys.includes(CTRL_C)) {
          finish('', { kind: 'none' });
          keyboard.interrupt();
        } else if (!listening) quiet();
        else if (reason !== null) edit(reason, keys);
        else if (keys.length === 1) choose(keys.toLowerCase());
      };
      signal.addEventListener('abort', () => finish(cli.err.dim('(settled elsewhere)'), { kind: 'none' }), { once: true });
      release = keyboard.take(onKeys);
      quiet();
    });
  } finally {
    clearTimeout(silence);
    release();
    resume();
  }
}
