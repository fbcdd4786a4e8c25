import { setTimeout as sleep } from 'node:timers/promises';
import type { EmbeddedRuntime } from '#libs/local';
import type { Cli } from '../cli/cli.js';
import { EXIT, type ExitCode, usageError } from '../cli/exit.js';
import type { DecisionInput } from '../input/approval.input.js';
import { either } from '../input/close.js';
import { jsonLine, sanitizeLine } from '../render/sanitize.js';
import { isOver, readSession } from '../turn/session.js';
import { decide, listPending, type PendingCall } from './pending.js';

/** How long somebody who waits for the turn has to take it up, and how often that is looked at, in ms. */
const PATIENCE_MS = 1_500;
const LOOK_MS = 50;

/** Carries out `approve` and `deny`: settles one call from another terminal. */
export async function decideHere(cli: Cli, input: DecisionInput, decision: 'allow' | 'deny'): Promise<ExitCode> {
  return await cli.withRuntime('reader', async (runtime) => {
    const call = await find(runtime, input);
    const { resolved, turn_resumed } = await decide(
      runtime.bus,
      call,
      decision === 'allow' ? { decision, always: input.always } : { decision, reason: input.reason ?? null },
    );
    if (!resolved) throw usageError(`call ${input.call} was settled by somebody else just now`, undefined, 'cli/call_settled');
    const { session_id, function_call_id, function_id } = call;
    if (input.json) {
      cli.print(jsonLine({ session_id, function_call_id, function_id, decision, resolved, turn_resumed: turn_resumed ?? null }));
      return EXIT.ok;
    }
    const said = decision === 'allow' ? cli.out.green(input.always ? 'allowed, always in this session' : 'allowed') : cli.out.red('denied');
    cli.print(`${said} · ${sanitizeLine(function_id)} · call ${sanitizeLine(function_call_id)} · session ${sanitizeLine(session_id)}`);
    if (turn_resumed === true) await tellWhoGoesOn(cli, runtime, session_id);
    return EXIT.ok;
  });
}

async function find(runtime: EmbeddedRuntime, input: DecisionInput): Promise<PendingCall> {
  await readSession(runtime, input.session);
  const pending = (await listPending(runtime.bus, input.session)) ?? [];
  const call = pending.find(({ function_call_id }) => function_call_id === input.call);
  if (call !== undefined) return call;
  const waiting = pending.map(({ function_call_id }) => function_call_id);
  throw usageError(
    `no call ${input.call} of session ${input.session} waits for an approval`,
    waiting.length === 0
      ? 'None of its calls does now; see `harness-cli approvals`. A call of a sub-agent waits in the session of that.'
      : `There waits ${either(waiting)}.`,
    'cli/unknown_call',
  );
}

/** Says so when nobody runs the turn on: a `send` that waits for it, or a worker, takes it up within a moment. */
async function tellWhoGoesOn(cli: Cli, runtime: EmbeddedRuntime, sessionId: string): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(LOOK_MS)) {
    const { turn, owner } = await readSession(runtime, sessionId);
    if (isOver(turn) || turn?.status !== 'running' || owner !== 'none') return;
  }
  cli.screen.note(cli.err.dim(`nobody runs this turn now: \`${cli.name} serve\` goes on with it`));
}
