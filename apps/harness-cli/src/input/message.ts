import { usageError } from '../cli/exit.js';

/** Standard input as the CLI sees it. */
export type InputStream = AsyncIterable<Uint8Array | string> & { isTTY?: boolean };

/** The largest message that is read from standard input. */
const MAX_BYTES = 8 * 1024 * 1024;
const GLOB_OPTIONS = new Set(['--allow', '--deny']);

async function readAll(stdin: InputStream): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stdin) {
    const part = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    size += part.byteLength;
    if (size > MAX_BYTES)
      throw usageError(
        `the message on standard input is larger than ${MAX_BYTES / 1024 / 1024} MB`,
        'Let the model read large files with a function.',
      );
    chunks.push(part);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw usageError('the message on standard input is not UTF-8 text');
  }
}

/** The message: the arguments joined by spaces, or standard input when the argument is `-`, or there is none and it is piped. */
export async function readMessage(args: readonly string[], stdin: InputStream): Promise<string> {
  const piped = (args.length === 1 && args[0] === '-') || (args.length === 0 && stdin.isTTY !== true);
  const message = piped ? (await readAll(stdin)).replace(/\r?\n$/, '') : args.join(' ');
  if (message.trim() !== '') return message;
  throw usageError(
    piped ? 'the message on standard input is empty' : 'there is no message',
    'Give it as arguments (`harness-cli send "what is this project?"`), or pipe it in. Words after --allow or --deny are taken as globs: put the message before them.',
  );
}

/**
 * `--allow` and `--deny` take every word up to the next option. A word among them that holds a space is no glob; when there is no
 * other message, and it does not come right after the option, it is the message: `send --allow 'coder::*' "read the docs"`.
 * Gives the words of the message and the globs that are left.
 */
export function messageAmongGlobs(
  args: readonly string[],
  globs: { allow?: string[]; deny?: string[] },
  argv: readonly string[],
): { words: readonly string[]; allow?: string[]; deny?: string[] } {
  const found = argv.filter(
    (word, index) =>
      /\s/.test(word) && [...(globs.allow ?? []), ...(globs.deny ?? [])].includes(word) && !GLOB_OPTIONS.has(argv[index - 1] ?? ''),
  );
  const message = found[0];
  if (args.length > 0 || message === undefined || found.length > 1) return { words: args, ...globs };
  const without = (list: string[] | undefined): string[] | undefined => list?.filter((glob) => glob !== message);
  return { words: [message], allow: without(globs.allow), deny: without(globs.deny) };
}
