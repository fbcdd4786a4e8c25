import { spawn } from 'node:child_process';
import { CLI, ROOT, Running } from './harness-cli.js';

/** Copies its standard input to a new terminal of 80 columns in which the command runs, and what that shows to its standard output. */
const IN_TERMINAL = `
import os, pty, sys
code = pty.spawn(["sh", "-c", 'stty cols 80 rows 24; exec "$@"', "sh"] + sys.argv[1:])
sys.exit(os.waitstatus_to_exitcode(code) % 256)
`;

/** The CLI as a person runs it in a terminal. */
export class InTerminal extends Running {
  /** Presses keys. */
  press(keys: string): void {
    this.child.stdin.write(keys);
  }

  /** Presses a key now and then until `pattern` is shown: what is pressed before a question can be read does not count. */
  async pressUntil(key: string, pattern: RegExp): Promise<void> {
    const timer = setInterval(() => this.press(key), 450);
    try {
      await this.until('stdout', pattern);
    } finally {
      clearInterval(timer);
    }
  }
}

/** Starts the built CLI in a terminal. */
export function startInTerminal(argv: readonly string[], { cwd = ROOT }: { cwd?: string } = {}): InTerminal {
  const child = spawn('python3', ['-c', IN_TERMINAL, process.execPath, CLI, ...argv], {
    cwd,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], TERM: 'xterm' },
  });
  child.stdin.on('error', () => undefined);
  return new InTerminal(child);
}
