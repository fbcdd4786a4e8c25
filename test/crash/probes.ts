import { closeSync, fsyncSync, mkdtempSync, openSync, rmdirSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type HookInput, textOf } from '#libs/contracts';
import type { InvocationContext } from '#libs/iii';
import type { EmbeddedRuntime } from '#libs/local';
import { type CountLine, countsFile, type EventLine, eventsFile, type JobLine, jobsFile, kindOf } from './protocol.js';
import type { Sender } from './sender.js';

/** Longer than a lease of tests is renewed after, in ms. */
const LASTING_MS = 400;

/** Appends a line to a file and waits until it is on disk. */
function append(path: string, line: object): void {
  const file = openSync(path, 'a');
  writeSync(file, `${JSON.stringify(line)}\n`);
  fsyncSync(file);
  closeSync(file);
}

/** Writes down each event of a turn that is delivered. */
export function watchEvents({ bus, dataDir }: EmbeddedRuntime): void {
  for (const type of ['harness::turn-started', 'harness::turn-completed']) {
    const id = `watch::${type.split('::')[1]}`;
    bus.registerFunction({ id }, (payload) => {
      const { session_id, turn_id, status } = payload as EventLine;
      append(eventsFile(dataDir), { type, session_id, turn_id, status } satisfies EventLine);
    });
    bus.registerTrigger({ type, function_id: id, config: {} });
  }
}

/** The hooks that hold calls and deny turns. */
export function gates({ bus }: EmbeddedRuntime): void {
  const gate = (name: string, point: string, config: { functions?: string[] }, decide: (input: HookInput) => object): void => {
    const function_id = `gate::${name}`;
    bus.registerFunction({ id: function_id }, (input) => decide(input as HookInput));
    bus.registerTrigger({ type: `harness::hook::${point}`, function_id, config });
  };
  const denied = (metadata: unknown): boolean => (metadata as { kind?: unknown } | undefined)?.kind === 'vetoed';
  gate('hold', 'pre-trigger', { functions: ['probe::held'] }, () => ({ decision: 'hold' }));
  gate('lapse', 'pre-trigger', { functions: ['probe::lapse'] }, () => ({ decision: 'hold', pending_timeout_ms: 1 }));
  gate('turn', 'pre-turn', {}, ({ metadata }) =>
    denied(metadata) ? { decision: 'deny', reason: 'not this turn' } : { decision: 'continue' },
  );
  gate('generation', 'pre-generate', {}, ({ generate }) => {
    const last = generate?.messages.at(-1);
    const barred = last?.role === 'user' && kindOf(textOf(last.content)) === 'barred';
    return barred ? { decision: 'deny', reason: 'not this generation' } : { decision: 'continue' };
  });
}

/** The functions that the model calls; each writes down that it was really invoked. */
export function probes(runtime: EmbeddedRuntime, sender: Sender): void {
  const { bus, dataDir } = runtime;
  const probe = (name: string, then: (line: CountLine, context: InvocationContext) => unknown): void => {
    bus.registerFunction({ id: `probe::${name}` }, (payload, context) => {
      const line = counted(payload, context);
      append(countsFile(dataDir), line);
      return then(line, context);
    });
  };
  const forever = (): Promise<never> => new Promise(() => undefined);
  probe('count', ({ call }) => ({ counted: call }));
  probe('secret', () => 'a secret');
  probe('fail', () => Promise.reject(new Error('probe/failed: this function always fails')));
  probe('held', () => 'released');
  probe('lapse', () => 'released too late');
  probe('steer', async ({ call, session_id }) => {
    await sender.send({ session_id, text: `tools ${session_id} steered during ${call}`, key: `steer-${call}` });
    return 'steered';
  });
  probe('stop', ({ session_id }) => {
    void sender.stop(session_id);
    return forever();
  });
  probe('hang', ({ session_id }) => {
    sender.tell({ type: 'hanging', session_id });
    return forever();
  });
  probe('last', async () => {
    await sleep(LASTING_MS);
    return 'lasted';
  });
  probe('leave', () => {
    void runtime.close(20).then(() => process.exit(0));
    return forever();
  });
  probe('drop', async ({ call, session_id }) => {
    await sender.send({ session_id, text: `text ${session_id} dropped during ${call}`, key: `drop-${call}` });
    void sender.stop(session_id);
    return await forever();
  });
  probe('detach', ({ call, session_id }, context) =>
    context.trigger({ function_id: 'harness::spawn', payload: { task: `text ${session_id} detached by ${call}` } }),
  );
  // Without a working directory no prompt can be built, until the first step has failed of that.
  probe('lose', () => {
    const folder = mkdtempSync(join(tmpdir(), 'harness-lost-'));
    process.chdir(folder);
    rmdirSync(folder);
    return 'lost';
  });
  bus.registerFunction({ id: 'probe::job' }, (payload) => append(jobsFile(dataDir), payload as JobLine));
  runtime.feed.subscribe((event) => {
    if (event.type === 'notice') process.chdir(dataDir);
  });
  bus.registerFunction({ id: 'probe::halt' }, async (payload) => {
    await sleep(30);
    await sender.stop((payload as { session_id: string }).session_id);
  });
}

function counted(payload: unknown, context: InvocationContext): CountLine {
  const { agent } = context.metadata as { agent: { session_id: string; turn_id: string } };
  return { call: (payload as { call: string }).call, session_id: agent.session_id, turn_id: agent.turn_id, pid: process.pid };
}
