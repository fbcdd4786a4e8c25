import type { SendRequest, SendResponse, TurnStatus } from '#libs/contracts';
import type { EmbeddedRuntime } from '#libs/local';
import type { Approver } from '../approval/approver.js';
import type { Cli, Signal } from '../cli/cli.js';
import { BY_SIGNAL, CliError, EXIT, type ExitCode } from '../cli/exit.js';
import { sanitizeLine } from '../render/sanitize.js';
import type { TurnView } from '../render/turn-view.js';
import { Children } from './children.js';
import type { ModelChoice } from './choose-model.js';
import { Interrupts } from './interrupts.js';
import { TurnWatch } from './watch.js';

/** A send that is ready to go. */
export interface Prepared {
  request: SendRequest;
  choice: ModelChoice;
  /** The policy allows nothing. */
  deniesAll: boolean;
  /** No question is asked on this terminal. */
  silent: boolean;
}

/** How long closing may take after a second signal, in ms. */
const LEAVE_MS = 1000;
const BY_STATUS: { readonly [status in TurnStatus]: ExitCode } = {
  completed: EXIT.ok,
  failed: EXIT.failed,
  cancelled: EXIT.cancelled,
  running: EXIT.failed,
  awaiting_functions: EXIT.failed,
};

/**
 * One turn that a person waits for. The first Ctrl-C stops the turn, the second leaves at once; SIGTERM and SIGHUP hand the turn
 * back, so that another process can go on with it.
 */
export class LiveTurn {
  private readonly interrupts: Interrupts;
  private runtime: EmbeddedRuntime | null = null;
  private turn: SendResponse | null = null;
  private finished = false;
  /** The exit code when a signal came before the message was sent. */
  private early: ExitCode | null = null;
  private leave: (code: ExitCode) => void = () => undefined;
  private readonly left: Promise<ExitCode>;

  constructor(
    private readonly cli: Cli,
    private readonly view: TurnView,
  ) {
    this.left = new Promise((resolve) => {
      this.leave = resolve;
    });
    this.interrupts = new Interrupts(cli.io.signals, (signal, times) => this.interrupted(signal, times));
  }

  /** Sends the message, shows the turn to its end and gives the exit code. */
  async run(runtime: EmbeddedRuntime, { request, choice, deniesAll, silent }: Prepared): Promise<ExitCode> {
    this.runtime = runtime;
    if (this.early !== null) return this.early;
    const watch = new TurnWatch(runtime);
    let approver: Approver | undefined;
    let children: Children | undefined;
    try {
      const keyboard = silent ? null : ((await this.cli.io.keyboard?.()) ?? null);
      const { Approver: Approving } = await import('../approval/approver.js');
      const turn = await send(runtime, request);
      this.turn = turn;
      const merged = turn.merged === true;
      this.view.accepted({ session_id: turn.session_id, turn_id: turn.turn_id, merged, choice, deniesAll });
      children = new Children(
        runtime,
        turn,
        (change) => this.view.child(change),
        (error) => this.cli.log('warn', 'sub-agents are not shown', { error }),
      );
      approver = new Approving(this.cli, runtime, this.view, keyboard, turn.session_id);
      if (this.early !== null) this.stop(runtime, turn);
      const end = watch
        .run({ sessionId: turn.session_id, turnId: turn.turn_id, merged }, (event) => {
          this.view.event(event);
          children?.seen(event);
        })
        .then(async (event) => {
          await children?.settle();
          this.finished = true;
          this.view.finished(event);
          return BY_STATUS[event.status];
        });
      return await Promise.race([end, this.left]);
    } finally {
      watch.close();
      children?.close();
      await approver?.close();
    }
  }

  /** Stores the message for a worker to run, and tells where it is. */
  async leaveToWorker(runtime: EmbeddedRuntime, { request, choice, deniesAll }: Prepared, asJson: boolean): Promise<ExitCode> {
    const turn = await send(runtime, request);
    const session = sanitizeLine(turn.session_id);
    this.view.accepted({ session_id: turn.session_id, turn_id: turn.turn_id, merged: turn.merged === true, choice, deniesAll });
    if (asJson) return EXIT.ok;
    this.cli.screen.waiting(null);
    this.cli.print(session);
    this.cli.screen.note(
      this.cli.err.dim(
        `stored; a worker runs it (\`${this.cli.name} serve\`). \`${this.cli.name} status ${session} --watch\` shows how it goes.`,
      ),
    );
    return EXIT.ok;
  }

  /** Gives the signals back. */
  close(): void {
    this.interrupts.close();
  }

  private interrupted(signal: Signal, times: number): void {
    if (this.finished) {
      this.leaveNow(BY_SIGNAL[signal]);
      return;
    }
    if (times > 1) {
      this.view.say(`left. ${this.afterwards()}`);
      this.leaveNow(BY_SIGNAL[signal]);
      return;
    }
    if (signal !== 'SIGINT') {
      this.view.say(`${signal}: ${this.isElsewhere ? 'leaving the turn' : 'handing the turn back'}. ${this.afterwards()}`);
      this.leave(BY_SIGNAL[signal]);
      if (this.turn === null) this.early = BY_SIGNAL[signal];
      return;
    }
    this.view.say('stopping the turn (Ctrl-C again leaves at once)');
    if (this.runtime !== null && this.turn !== null) this.stop(this.runtime, this.turn);
    else this.early = EXIT.cancelled;
  }

  private leaveNow(code: ExitCode): void {
    this.cli.graceMs = 0;
    setTimeout(() => this.cli.io.exit(code), LEAVE_MS).unref();
    if (this.runtime === null) this.cli.io.exit(code);
    else void this.runtime.close(0).finally(() => this.leave(code));
  }

  private afterwards(): string {
    if (this.turn === null) return 'The message was not sent.';
    const session = sanitizeLine(this.turn.session_id);
    const { name, invocation } = this.cli;
    const goesOn = this.isElsewhere ? 'its worker goes on with it' : `\`${name} serve\` goes on with it`;
    return `The turn is stored: ${goesOn}, \`${invocation} stop ${session}\` ends it, \`${invocation} status ${session}\` shows it.`;
  }

  /** Another process runs the turn, wherever this one is. */
  private get isElsewhere(): boolean {
    return this.cli.url('client') !== undefined;
  }

  private stop(runtime: EmbeddedRuntime, { session_id, turn_id }: SendResponse): void {
    runtime.bus
      .trigger({ function_id: 'harness::stop', payload: { session_id, turn_id } })
      .catch((error: unknown) => this.cli.log('error', 'the turn could not be stopped', { error: String(error) }));
  }
}

async function send(runtime: EmbeddedRuntime, request: SendRequest): Promise<SendResponse> {
  const turn = await runtime.bus.trigger<SendResponse>({ function_id: 'harness::send', payload: request });
  if (!turn.accepted)
    throw new CliError(EXIT.unreachable, 'cli/not_accepted', `the message was not accepted by session ${sanitizeLine(turn.session_id)}`);
  return turn;
}
