import { describe, expect, it } from 'vitest';
import { errorCode, HarnessError, type JsonValue } from '#libs/contracts';
import type { Bus, ChannelReader, Registration, TriggerRegistration } from '#libs/iii';
import type { Implementation } from './store.js';

/** Two workers on one engine. `close` ends both. */
export interface TwoWorkers {
  a: Bus;
  b: Bus;
  close(): Promise<void>;
}

/** What makes two workers of one kind. */
export interface BusAdapter {
  /** What lies between the two, for the names of the tests. */
  name: string;
  /** The implementations of `Bus` that the two are of. */
  covers: readonly Implementation[];
  /** `offers`: worker `b` calls and opens channels, and has no functions or channel ends for others. */
  without?: 'offers';
  open(): Promise<TwoWorkers>;
}

/** What every adapter of the `Bus` port must do, whatever lies between its workers. */
export function busConformance({ name, covers, without, open }: BusAdapter): void {
  const offers = it.skipIf(without === 'offers');

  describe(`a bus: ${name}`, () => {
    const between = async (use: (workers: TwoWorkers) => Promise<void>): Promise<void> => {
      const workers = await open();
      try {
        await use(workers);
      } finally {
        await workers.close();
      }
    };

    it('is made of what the adapter says it covers', () =>
      between(async ({ a, b }) => {
        for (const implementation of covers) expect([a, b].some((worker) => worker instanceof implementation)).toBe(true);
      }));

    it('carries a payload to a function of another worker, and its result back', () =>
      between(async ({ a, b }) => {
        await registered(a, { id: 'conformance::echo' }, (payload) => ({ got: payload }));
        const payload = { text: 'größer 🌍', list: [1, null, { deep: true }], empty: '' };
        expect(await b.trigger({ function_id: 'conformance::echo', payload })).toEqual({ got: payload });
      }));

    it('carries metadata beside the payload, and gives none where there is none', () =>
      between(async ({ a, b }) => {
        await registered(a, { id: 'conformance::meta' }, (_, { metadata }) => metadata ?? null);
        expect(await b.trigger({ function_id: 'conformance::meta', payload: {}, metadata: { tenant: 7 } })).toEqual({ tenant: 7 });
        expect(await b.trigger({ function_id: 'conformance::meta', payload: {} })).toBeNull();
      }));

    offers('lets a nested call inherit for whom the outer one was made', () =>
      between(async ({ a, b }) => {
        const agent = { session_id: 's', turn_id: 't', depth: 1 };
        await registered(b, { id: 'conformance::inner' }, (_, { metadata }) => metadata ?? null);
        await registered(a, { id: 'conformance::outer' }, (_, context) =>
          context.trigger<JsonValue>({ function_id: 'conformance::inner', payload: {} }),
        );
        const metadata = { agent, other: 1 };
        expect(await b.trigger({ function_id: 'conformance::outer', payload: {}, metadata })).toEqual({ agent });
      }),
    );

    it('gives the error of a target with its code and its words', () =>
      between(async ({ a, b }) => {
        await registered(a, { id: 'conformance::coded' }, () => {
          throw new HarnessError('example/no_such_thing', 'there is no thing of that name');
        });
        await registered(a, { id: 'conformance::plain' }, () => Promise.reject(new TypeError('it broke')));
        const coded = await failure(b, 'conformance::coded');
        expect(errorCode(coded)).toBe('example/no_such_thing');
        expect(coded.message).toContain('there is no thing of that name');
        expect((await failure(b, 'conformance::plain')).message).toContain('it broke');
      }));

    it('says that there is no such function, also once its worker took it back', () =>
      between(async ({ a, b }) => {
        expect(errorCode(await failure(b, 'conformance::none'))).toBe('function_not_found');
        const registration = await registered(a, { id: 'conformance::gone' }, () => 1);
        expect(await b.trigger({ function_id: 'conformance::gone', payload: {} })).toBe(1);
        registration.unregister();
        await until(async () => errorCode(await failure(b, 'conformance::gone')) === 'function_not_found');
      }));

    it('ends a call at its timeout, and when its caller gives up', () =>
      between(async ({ a, b }) => {
        let calls = 0;
        const asked = hearing();
        await registered(a, { id: 'conformance::slow' }, () => {
          calls += 1;
          if (calls > 1) asked.tell(calls);
          return new Promise(() => undefined);
        });
        const late = await failure(b, 'conformance::slow', { timeoutMs: 100 });
        expect(errorCode(late)).toBe('timeout');
        const stop = new AbortController();
        const given = failure(b, 'conformance::slow', { signal: stop.signal });
        await asked.heard;
        stop.abort();
        expect(errorCode(await given)).toBe('invocation_stopped');
        expect(errorCode(await failure(b, 'conformance::slow', { signal: AbortSignal.abort() }))).toBe('invocation_stopped');
        expect(calls).toBe(2);
      }));

    it('delivers a call of no result without waiting for it', () =>
      between(async ({ a, b }) => {
        const told = hearing<unknown>();
        await registered(a, { id: 'conformance::told' }, (payload) => told.tell(payload));
        expect(await b.trigger({ function_id: 'conformance::told', payload: { n: 1 }, action: { type: 'void' } })).toBeUndefined();
        expect(await told.heard).toEqual({ n: 1 });
      }));

    offers('has a trigger type of one worker, and bindings of another that come, fire and go', () =>
      between(async ({ a, b }) => {
        const bound = hearing<TriggerRegistration>();
        const unbound = hearing<string>();
        const fired = hearing<unknown>();
        await registered(b, { id: 'conformance::on-tick' }, (payload) => fired.tell(payload));
        const binding = b.registerTrigger({ type: 'conformance::tick', function_id: 'conformance::on-tick', config: { every: 2 } });
        a.registerTriggerType(
          { id: 'conformance::tick', description: 'Ticks.' },
          { registerTrigger: (trigger) => void bound.tell(trigger), unregisterTrigger: ({ id }) => void unbound.tell(id) },
        );
        const trigger = await bound.heard; // it was bound before its type was there
        expect(trigger).toMatchObject({ type: 'conformance::tick', function_id: 'conformance::on-tick', config: { every: 2 } });
        await a.trigger({ function_id: trigger.function_id, payload: { tick: 1 } });
        expect(await fired.heard).toEqual({ tick: 1 });
        binding.unregister();
        expect(await unbound.heard).toBe(trigger.id);
      }),
    );

    offers('streams over a channel: every message in order, then the end', () =>
      between(async ({ a, b }) => {
        await registered(b, { id: 'conformance::count' }, async (payload) => {
          const writer = b.openWriter((payload as { writer_ref: Parameters<Bus['openWriter']>[0] }).writer_ref);
          for (let n = 0; n < 500; n += 1) await writer.send({ n, text: '–'.repeat(50) });
          writer.close();
          return { ok: true };
        });
        const channel = await a.createChannel();
        const done = a.trigger({ function_id: 'conformance::count', payload: { writer_ref: channel.writerRef } });
        const numbers = (await all(channel.reader)).map((message) => (message as { n: number }).n);
        expect(numbers).toEqual(Array.from({ length: 500 }, (_, n) => n));
        expect(await done).toEqual({ ok: true });
      }),
    );

    offers('holds a writer back whose reader does not read', () =>
      between(async ({ a, b }) => {
        const channel = await a.createChannel({ bufferSize: 8 });
        const writer = b.openWriter(channel.writerRef);
        const text = 'x'.repeat(64 * 1024);
        let sent = 0;
        let held: Promise<void> | undefined;
        const LOTS = 2_000; // more than any buffer between the two should take
        while (held === undefined && sent < LOTS) {
          const waiting = writer.send({ n: sent, text });
          sent += 1;
          if (waiting instanceof Promise) {
            const lasting = await Promise.race([
              waiting.then(() => false),
              new Promise<boolean>((resolve) => setTimeout(resolve, 150, true)),
            ]);
            if (lasting) held = waiting;
          }
        }
        expect(sent).toBeLessThan(LOTS);
        let read = 0;
        for (let batch = await channel.reader.next(); batch !== null; batch = await channel.reader.next()) {
          read += batch.length;
          if (read === sent) writer.close();
        }
        expect(read).toBe(sent);
        await held;
      }),
    );

    offers('tells a writer that its reader has closed, which is a cancel', () =>
      between(async ({ a, b }) => {
        const channel = await a.createChannel();
        const writer = b.openWriter(channel.writerRef);
        const cancelled = new Promise((resolve) => writer.signal.addEventListener('abort', resolve, { once: true }));
        await writer.send({ n: 1 });
        expect(await channel.reader.next()).toEqual([{ n: 1 }]);
        channel.reader.close();
        await cancelled;
        expect(writer.signal.aborted).toBe(true);
      }),
    );
  });
}

/** Registers, and waits until the engine can reach the function: some adapters do not tell. */
async function registered(bus: Bus, definition: { id: string }, handler: Parameters<Bus['registerFunction']>[1]): Promise<Registration> {
  const registration = bus.registerFunction(definition, handler);
  await until(async () => {
    const info = { function_id: 'engine::functions::info', payload: { function_ids: [definition.id] } };
    const { functions } = await bus.trigger<{ functions: { error?: string }[] }>(info);
    return functions[0]?.error === undefined;
  });
  return registration;
}

async function failure(bus: Bus, function_id: string, how: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<Error> {
  const outcome: unknown = await bus.trigger({ function_id, payload: {}, ...how }).catch((error: unknown) => error);
  if (outcome instanceof Error) return outcome;
  throw new Error(`${function_id} gave ${JSON.stringify(outcome)} instead of an error`);
}

async function all(reader: ChannelReader): Promise<unknown[]> {
  const messages: unknown[] = [];
  for (let batch = await reader.next(); batch !== null; batch = await reader.next()) messages.push(...batch);
  return messages;
}

const PATIENCE_MS = 20_000;

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; !(await holds()); ) {
    if (Date.now() > end) throw new Error('it did not come to hold');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function hearing<T>(): { heard: Promise<T>; tell(value: T): null } {
  let tell: (value: T) => void = () => undefined;
  const heard = new Promise<T>((resolve) => {
    tell = resolve;
  });
  return {
    heard,
    tell: (value) => {
      tell(value);
      return null;
    },
  };
}
