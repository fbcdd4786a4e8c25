import { Controller, type INestMicroservice } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { concat, type Observable, of, throwError } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { errorCode, HarnessError } from '#libs/contracts';
import type { InvocationContext } from './bus.js';
import { IiiFunction } from './decorators.js';
import { LocalEngine } from './local/engine.js';
import { BusErrorFilter, IiiTransport } from './transport.js';

const anything = { type: 'object' };
/** Opened by `demo::slow` when it runs, and by a test to let it end. */
let started: () => void = () => undefined;
let release: Promise<string> = Promise.resolve('');

@Controller()
class Demo {
  @IiiFunction({
    id: 'demo::echo',
    description: 'e',
    request: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false },
    response: anything,
    metadata: { internal: true },
  })
  echo(@Payload() payload: unknown, @Ctx() context: InvocationContext): unknown {
    return { payload, function_id: context.function_id, metadata: context.metadata };
  }

  @IiiFunction({
    id: 'demo::own',
    description: 'o',
    request: { type: 'object', required: ['a'] },
    invalid: (detail) => new HarnessError('demo/bad_input', detail),
  })
  own(): string {
    return 'never';
  }

  @IiiFunction({ id: 'demo::throws', description: 't', request: anything })
  throws(): never {
    throw new HarnessError('demo/broken', 'at once');
  }

  @IiiFunction({ id: 'demo::rejects', description: 'r', request: anything })
  rejects(): Promise<never> {
    return Promise.reject(new HarnessError('demo/broken', 'later'));
  }

  @IiiFunction({ id: 'demo::errs', description: 'o', request: anything })
  errs(): Observable<number> {
    return concat(
      of(1),
      throwError(() => new HarnessError('demo/broken', 'in a stream')),
    );
  }

  @IiiFunction({ id: 'demo::twice', description: 'o', request: anything })
  twice(): Observable<number> {
    return of(1, 2);
  }

  @IiiFunction({ id: 'demo::none', description: 'n', request: anything })
  none(): Observable<never> {
    return of();
  }

  @IiiFunction({ id: 'demo::foreign', description: 'f', request: anything })
  foreign(): never {
    throw Object.assign(new TypeError('of another kind'), { code: 'E_OTHER' });
  }

  @IiiFunction({ id: 'demo::slow', description: 's', request: anything })
  async slow(): Promise<string> {
    started();
    return await release;
  }
}

let app: INestMicroservice | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

async function open(drainMs?: number) {
  const engine = new LocalEngine();
  const bus = engine.connect({ name: 'demo' });
  const module = await Test.createTestingModule({ controllers: [Demo] }).compile();
  app = module.createNestMicroservice({ strategy: new IiiTransport(bus, drainMs), logger: false });
  app.useGlobalFilters(new BusErrorFilter());
  await app.listen();
  const call = <T = unknown>(id: string, payload: unknown = {}, metadata?: { [key: string]: string }): Promise<T> =>
    bus.trigger<T>({ function_id: id, payload, ...(metadata === undefined ? {} : { metadata }) });
  return { engine, bus, call, app };
}

describe('IiiTransport', () => {
  it('registers every decorated method with what it says of itself', async () => {
    const { engine } = await open();
    expect(engine.functions.get('demo::echo')?.definition).toEqual({
      id: 'demo::echo',
      description: 'e',
      request_format: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false },
      response_format: anything,
      metadata: { internal: true },
    });
    expect(engine.functions.all().filter(({ definition }) => definition.id.startsWith('demo::'))).toHaveLength(9);
  });

  it('hands over payload and context, without what an engine adds to the payload', async () => {
    const { call } = await open();
    expect(await call('demo::echo', { n: 1, _caller_worker_id: 'w' }, { m: '1' })).toEqual({
      payload: { n: 1 },
      function_id: 'demo::echo',
      metadata: { m: '1' },
    });
  });

  it.each<[unknown, string]>([
    [{}, 'n is missing'],
    [{ n: 'x' }, 'n must be integer'],
    [{ n: 1, m: 1 }, 'm is not a known field'],
    [undefined, 'request must be object'],
    ['x', 'request must be object'],
  ])('refuses %j and names the field', async (payload, told) => {
    const { call } = await open();
    await expect(call('demo::echo', payload === undefined ? null : payload)).rejects.toThrow(`demo/invalid_request: ${told}`);
  });

  it('lets a function say how a bad request is told', async () => {
    const { call } = await open();
    await expect(call('demo::own', {})).rejects.toThrow('demo/bad_input: a is missing');
  });

  it.each([
    ['demo::throws', 'at once'],
    ['demo::rejects', 'later'],
    ['demo::errs', 'in a stream'],
  ])('C50 gives the caller of %s its error, once, with its code', async (id, detail) => {
    const { call } = await open();
    const error: unknown = await call(id).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(HarnessError);
    expect((error as HarnessError).message).toBe(`demo/broken: ${detail}`);
  });

  it('C50 passes an error of another kind on as it is', async () => {
    const { call } = await open();
    const error: unknown = await call('demo::foreign').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TypeError);
    expect(errorCode(error)).toBe('E_OTHER');
  });

  it('C50 answers with the last value of a stream, and with null when it is empty', async () => {
    const { call } = await open();
    expect(await call('demo::twice')).toBe(2);
    expect(await call('demo::none')).toBeNull();
  });

  it('C50 goes on after errors', async () => {
    const { call } = await open();
    for (let n = 0; n < 3; n += 1) await call('demo::throws').catch(() => undefined);
    expect(await call('demo::echo', { n: 1 })).toMatchObject({ payload: { n: 1 } });
  });

  it('C50 takes the functions back when it closes, and waits for calls in flight', async () => {
    const { engine, call, app: running } = await open();
    let open_: (value: string) => void = () => undefined;
    release = new Promise((resolve) => {
      open_ = resolve;
    });
    const runs = new Promise<void>((resolve) => {
      started = resolve;
    });
    const answer = call('demo::slow');
    await runs;
    let closed = false;
    const closing = running.close().then(() => {
      closed = true;
    });
    await expect(call('demo::slow')).rejects.toThrow('function_not_found');
    expect(closed).toBe(false);
    open_('done');
    expect(await answer).toBe('done');
    await closing;
    expect(engine.functions.all().some(({ definition }) => definition.id.startsWith('demo::'))).toBe(false);
  });

  it('does not wait for a call that never ends longer than it may', async () => {
    const { call, app: running } = await open(20);
    release = new Promise(() => undefined);
    const runs = new Promise<void>((resolve) => {
      started = resolve;
    });
    void call('demo::slow').catch(() => undefined);
    await runs;
    await running.close();
  });

  it('fails to start when another worker has the function', async () => {
    const engine = new LocalEngine();
    engine.connect({ name: 'first' }).registerFunction({ id: 'demo::echo' }, () => 1);
    const module = await Test.createTestingModule({ controllers: [Demo] }).compile();
    const second = module.createNestMicroservice({ strategy: new IiiTransport(engine.connect({ name: 'second' })), logger: false });
    await expect(second.listen()).rejects.toThrow('function demo::echo is already registered by worker first');
    await second.close();
  });
});
