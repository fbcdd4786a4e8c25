import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename } from 'node:path';
import { errorMessage } from '#libs/contracts';
import { describeFault } from './fault.js';
import { fingerprint } from './folder.js';
import type { LiveConfiguration } from './live.js';

export interface WatchOptions {
  /** How long nothing may happen in the folder before it is read, in ms; 100 by default. */
  debounceMs?: number;
  /** How long events may keep it from being read, in ms; 1000 by default. */
  maxWaitMs?: number;
  /** How often the folder is looked at besides, in ms; 1000 by default. */
  lookMs?: number;
  /** Told of each change and each fault, once. Never gets a value. */
  log?: (level: 'info' | 'warn', message: string) => void;
  /** Watches a folder; `fs.watch` by default. */
  watchFolder?: (dir: string, onEvent: (name: string | null) => void) => FSWatcher;
}

const watchByEvents: Required<WatchOptions>['watchFolder'] = (dir, onEvent) =>
  watch(dir, { persistent: false }, (_event, name) => onEvent(name));

/**
 * Keeps a `LiveConfiguration` up to date with its folder. Events of the folder make that quick; a slow look besides makes it
 * certain: where there are no events (links, network disks, a folder that appears later or is replaced), and when watching fails.
 * Keeps no process alive.
 */
export class ConfigurationWatch {
  /** How often the folder has been read. */
  reads = 0;
  private readonly options: Required<WatchOptions>;
  private watcher: { close(): void; folder: string } | null = null;
  private looking: NodeJS.Timeout | undefined;
  private pending: { timer: NodeJS.Timeout; since: number } | undefined;
  private retry: NodeJS.Timeout | undefined;
  private seen = '';
  private saidFaults = new Set<string>();
  private saidUnwatched = false;
  private stopListening: (() => void) | undefined;

  constructor(
    private readonly configuration: LiveConfiguration,
    options: WatchOptions = {},
  ) {
    this.options = { debounceMs: 100, maxWaitMs: 1_000, lookMs: 1_000, log: () => undefined, watchFolder: watchByEvents, ...options };
  }

  start(): void {
    if (this.looking !== undefined) return;
    this.stopListening = this.configuration.onChange((changes) => {
      for (const { definition, event_type } of changes)
        this.options.log('info', `${definition.id}: ${event_type.replace('configuration:', '')}`);
    });
    this.saidFaults = this.faults(); // the start has told them
    this.arm();
    this.looking = setInterval(() => this.look(), this.options.lookMs).unref();
    this.read(); // what has changed since the start
  }

  stop(): void {
    clearInterval(this.looking);
    clearTimeout(this.pending?.timer);
    clearTimeout(this.retry);
    this.looking = this.pending = this.retry = undefined;
    this.stopListening?.();
    this.disarm();
  }

  private look(): void {
    this.arm();
    if (fingerprint(this.configuration.dir) !== this.seen) this.schedule();
  }

  private schedule(): void {
    if (this.looking === undefined) return;
    const now = Date.now();
    const since = this.pending?.since ?? now;
    clearTimeout(this.pending?.timer);
    const wait = Math.max(0, Math.min(this.options.debounceMs, since + this.options.maxWaitMs - now));
    this.pending = { since, timer: setTimeout(() => this.read(), wait).unref() };
  }

  private read(): void {
    clearTimeout(this.pending?.timer);
    clearTimeout(this.retry);
    this.pending = undefined;
    this.arm();
    this.seen = fingerprint(this.configuration.dir);
    this.reads += 1;
    const wait = this.tryRead();
    if (wait > 0) this.retry = setTimeout(() => this.read(), wait).unref();
    this.tellFaults();
  }

  /** A surprise of the disk, or of a listener, must not end the process that is watched for. */
  private tryRead(): number {
    try {
      return this.configuration.read();
    } catch (error) {
      this.options.log('warn', `${this.configuration.dir} could not be read again: ${errorMessage(error)}`);
      return 0;
    }
  }

  private tellFaults(): void {
    const faults = this.faults();
    for (const fault of faults) if (!this.saidFaults.has(fault)) this.options.log('warn', fault);
    this.saidFaults = faults;
  }

  private faults(): Set<string> {
    return new Set(this.configuration.faults.map(describeFault));
  }

  /** Watches the folder that has the name now. */
  private arm(): void {
    const folder = identity(this.configuration.dir);
    if (this.watcher !== null && this.watcher.folder === folder) return;
    this.disarm();
    if (folder === null) return;
    try {
      const watcher = this.options.watchFolder(this.configuration.dir, (name) => this.onEvent(name));
      watcher.on('error', (error) => this.onError(watcher, error));
      this.watcher = { folder, close: () => watcher.close() };
    } catch (error) {
      this.unwatched(error);
    }
  }

  private disarm(): void {
    this.watcher?.close();
    this.watcher = null;
  }

  private onEvent(name: string | null): void {
    if (this.mayMatter(name)) this.schedule();
  }

  private onError(watcher: FSWatcher, error: Error): void {
    watcher.close();
    this.watcher = null; // the next look arms it again
    this.unwatched(error);
    this.schedule();
  }

  private unwatched(error: unknown): void {
    if (this.saidUnwatched) return;
    this.saidUnwatched = true;
    const code = String((error as NodeJS.ErrnoException).code ?? 'unknown error');
    this.options.log(
      'warn',
      `${this.configuration.dir} cannot be watched (${code}); it is looked at every ${this.options.lookMs} ms instead`,
    );
  }

  /** A configuration file, what a link in a mounted folder points through, or the folder itself. */
  private mayMatter(name: string | null): boolean {
    return name === null || /\.(ya?ml|json)$/i.test(name) || name.startsWith('..') || name === basename(this.configuration.dir);
  }
}

function identity(dir: string): string | null {
  try {
    const { dev, ino } = statSync(dir);
    return `${dev}/${ino}`;
  } catch {
    return null; // not there, or not to be looked into: reading it says which
  }
}
