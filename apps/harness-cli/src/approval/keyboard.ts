import { closeSync, openSync } from 'node:fs';
import { ReadStream } from 'node:tty';

/** The keyboard of the terminal that a person sits at. */
export interface Keyboard {
  /** Takes it: keys come as they are pressed, unechoed, until the returned function gives it back. */
  take(onKeys: (text: string) => void): () => void;
  /** What Ctrl-C does while it is taken. */
  interrupt(): void;
}

/** The keyboard of this process; null when no person can see a question and answer it. */
export function keyboardOf(stdin: NodeJS.ReadStream, stderr: { isTTY?: boolean }): Keyboard | null {
  if (stderr.isTTY !== true) return null;
  const interrupt = (): void => {
    process.kill(process.pid, 'SIGINT');
  };
  if (stdin.isTTY) return { take: (onKeys) => takeFrom(stdin, onKeys), interrupt };
  // The message came by a pipe: the terminal is asked itself.
  let tty: number;
  try {
    tty = openSync('/dev/tty', 'r');
  } catch {
    return null; // there is none
  }
  closeSync(tty);
  return {
    take: (onKeys) => {
      const stream = new ReadStream(openSync('/dev/tty', 'r'));
      const release = takeFrom(stream, onKeys);
      return () => {
        release();
        stream.destroy();
      };
    },
    interrupt,
  };
}

function takeFrom(stream: NodeJS.ReadStream, onKeys: (text: string) => void): () => void {
  const listener = (chunk: Buffer | string): void => onKeys(String(chunk));
  const wasRaw = stream.isRaw;
  stream.setRawMode(true);
  stream.on('data', listener);
  stream.resume();
  return () => {
    stream.off('data', listener);
    stream.pause();
    stream.setRawMode(wasRaw);
  };
}
