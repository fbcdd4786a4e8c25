import { withoutPassword } from '#libs/contracts';
import type { EmbeddedRuntime, OpenRuntimeOptions, RuntimeRole } from '#libs/local';
import type { Keyboard } from '../approval/keyboard.js';
import { dataDir } from '../input/data-dir.js';
import type { InputStream } from '../input/message.js';
import { Output, type OutputStream } from '../render/output.js';
import { redact } from '../render/redact.js';
import { sanitizeLine } from '../render/sanitize.js';
import { Screen } from '../render/screen.js';
import { canMoveCursor, type Style, styleOf, wantsColor } from '../render/style.js';
import { EXIT, type ExitCode } from './exit.js';
import type { RuntimeRequest } from './open-runtime.js';

export type Signal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/** What the CLI has of the world; a test gives its own. */
export interface CliIo {
  stdin: InputStream;
  stdout: OutputStream;
  stderr: OutputStream;
  env: NodeJS.ProcessEnv;
  signals: { on(signal: Signal, handler: () => void): unknown; off(signal: Signal, handler: () => void): unknown };
  openRuntime(request: RuntimeRequest): Promise<EmbeddedRuntime>;
  /** The keyboard of the person in front, or null; asked only when there is something to ask. */
  keyboard?(): Promise<Keyboard | null>;
  /** Ends the process at once. */
  exit(code: number): void;
  /** Milliseconds since the epoch. */
  now(): number;
  /** The program was called by the name of the worker, `harness`. */
  asWorker?: boolean;
}

/** Options that every command takes. */
export interface GlobalOptions {
  dataDir?: string;
  url?: string;
  debug?: boolean;
}

const shellWord = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${sanitizeLine(text).replaceAll("'", `'\\''`)}'`);

/** One run of the CLI: its streams, its global options and its exit code. */
export class Cli {
  readonly stdout: Output;
  readonly stderr: Output;
  /** Styles for standard output, and for standard error. */
  readonly out: Style;
  readonly err: Style;
  readonly screen: Screen;
  global: GlobalOptions = {};
  exitCode: ExitCode = EXIT.ok;
  /** How long the runtime may take to close, in ms; the runtime's own default when absent. */
  graceMs: number | undefined;

  constructor(
    readonly io: CliIo,
    readonly name: string,
    readonly argv: readonly string[] = [],
  ) {
    this.stdout = new Output(io.stdout);
    this.stderr = new Output(io.stderr);
    this.out = styleOf(wantsColor(io.stdout, io.env));
    this.err = styleOf(wantsColor(io.stderr, io.env));
    this.screen = new Screen(this.stdout, this.stderr, this.err, canMoveCursor(io.stderr, io.env), io.now);
  }

  /** How to call this program on the same data from another terminal. */
  get invocation(): string {
    const { dataDir: folder, url } = this.global;
    const words = [
      this.name,
      ...(folder === undefined ? [] : ['--data-dir', shellWord(folder)]),
      ...(url === undefined ? [] : ['--url', shellWord(withoutPassword(url))]),
    ];
    return words.join(' ');
  }

  /** Writes lines to standard output. */
  print(...lines: string[]): void {
    for (const line of lines) this.stdout.write(`${line}\n`);
  }

  /** Columns for what goes to standard output; infinite when that is no terminal. */
  get columns(): number {
    return this.stdout.stream.isTTY === true ? this.stdout.columns : Number.POSITIVE_INFINITY;
  }

  /** Path and origin of the data folder. */
  dataDir(): ReturnType<typeof dataDir> {
    return dataDir(this.global.dataDir, this.io.env);
  }

  /** Where the harness is, if not in a data folder: `--url`, else `III_URL` unless a folder is named on the command line; a worker takes both. */
  url(role: RuntimeRole): string | undefined {
    const { url, dataDir: folder } = this.global;
    return url ?? (role === 'worker' || folder === undefined ? this.io.env['III_URL'] || undefined : undefined);
  }

  /** Opens the data folder (with `isHere` in any case), or the connection to `--url`, gives the runtime to `use` and closes it on every path. */
  async withRuntime<T>(
    role: RuntimeRole,
    use: (runtime: EmbeddedRuntime) => Promise<T>,
    { isHere = false, ...how }: Pick<RuntimeRequest, 'log' | 'gateway' | 'prepare' | 'signal'> & { isHere?: boolean } = {},
  ): Promise<T> {
    const url = isHere ? undefined : this.url(role);
    const runtime = await this.io.openRuntime({
      dataDir: this.dataDir().path,
      role,
      log: this.log,
      ...how,
      ...(url === undefined ? {} : { url }),
      ...fromEnvironment(this.io.env),
      otlp: exportsTraces(this.io.env),
    });
    try {
      return await use(runtime);
    } finally {
      await runtime.close(this.graceMs);
    }
  }

  /** Background trouble goes to standard error: warnings and errors always, the rest with --debug. */
  readonly log: NonNullable<OpenRuntimeOptions['log']> = (level, message, context) => {
    if (this.global.debug !== true && (level === 'debug' || level === 'info')) return;
    const details = Object.entries(context).map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
    const text = sanitizeLine(redact([`${level}:`, message, ...details].join(' '), this.io.env));
    this.screen.note(level === 'error' ? this.err.red(text) : level === 'warn' ? this.err.yellow(text) : this.err.dim(text));
  };

  /** Resolves when all output is written, or its reader is gone. */
  async flushed(): Promise<void> {
    this.screen.close();
    await Promise.all([this.stdout.flushed(), this.stderr.flushed()]);
  }
}

/** True when the environment names a collector of traces, by the variables of OpenTelemetry. */
function exportsTraces(env: NodeJS.ProcessEnv): boolean {
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || env['OTEL_TRACES_EXPORTER'] === 'none') return false;
  return Boolean(env['OTEL_EXPORTER_OTLP_ENDPOINT'] || env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']);
}

/** What the environment says of how a runtime is opened. */
function fromEnvironment(env: NodeJS.ProcessEnv): Pick<RuntimeRequest, 'siblings' | 'token' | 'redisUrl' | 'store'> {
  const { HARNESS_SIBLINGS: siblings, HARNESS_GATEWAY_TOKEN: token, REDIS_URL: redisUrl, HARNESS_STORE: store } = env;
  return {
    ...(siblings === undefined ? {} : { siblings }),
    ...(token ? { token } : {}),
    ...(redisUrl ? { redisUrl } : {}),
    ...(store ? { store } : {}),
  };
}
