/** The keyboard of the terminal that a person sits at. */
export interface Keyboard {
  /** Takes it: keys come as they are pressed, unechoed, until the returned function gives it back. */
  take(onKeys: (text: string) => void): () => void;
  /** What Ctrl-C does while it is taken. */
  interrupt(): void;
}

/** The keyboard of this process; null when no person can see a question and answer it, as where the message comes by a pipe. */
export function keyboardOf(stdin: NodeJS.ReadStream, stderr: { isTTY?: boolean }): Keyboard | null {
  if (stderr.isTTY !== true || !stdin.isTTY) return null;
  return {
    take: (onKeys) => takeFrom(stdin, onKeys),
    interrupt: () => {
      process.kill(process.pid, 'SIGINT');
    },
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
