import { expect, it, onTestFinished } from 'vitest';
import { connectSdk, type SdkBus, type TraceContext } from '#libs/iii';
import type { TurnSpans } from '../../libs/local/src/traces/index.js';
import { agentCall } from '../support/scripted-model.js';
import { asks, says } from '../support/scripts.js';
import { openWithGateway, urlOf } from './remote.js';

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

async function connect(url: string): Promise<SdkBus> {
  const bus = await connectSdk(url, { name: 'of a trace' });
  onTestFinished(async () => await bus.close());
  return bus;
}

it('takes the trace context of a call over the wire, both ways, and on to the calls inside', async () => {
  const rig = await openWithGateway();
  const [one, other] = [await connect(urlOf(rig)), await connect(urlOf(rig))];
  const seen: { [id: string]: TraceContext | undefined } = {};
  one.registerFunction({ id: 'a::outer' }, async (_, context) => {
    await Promise.resolve();
    seen['a::outer'] = context.trace;
    await context.trigger({ function_id: 'a::inner', payload: {} });
    await context.trigger({ function_id: 'a::inner', payload: {}, action: { type: 'void' } });
  });
  one.registerFunction({ id: 'a::inner' }, (_, context) => {
    seen[seen['a::inner'] === undefined ? 'a::inner' : 'a::void'] = context.trace;
  });
  await one.trigger({ function_id: 'engine::workers::list', payload: {} });
  await other.trigger({ function_id: 'a::outer', payload: {}, trace: { traceparent: TRACEPARENT } });
  await expect.poll(() => seen['a::void'], { timeout: 20_000 }).toBeDefined();
  expect(seen).toMatchObject({
    'a::outer': { traceparent: TRACEPARENT },
    'a::inner': { traceparent: TRACEPARENT },
    'a::void': { traceparent: TRACEPARENT },
  });
  seen['a::plain'] = { traceparent: 'none' };
  one.registerFunction({ id: 'a::plain' }, (_, context) => {
    seen['a::plain'] = context.trace;
  });
  await one.trigger({ function_id: 'engine::workers::list', payload: {} });
  await other.trigger({ function_id: 'a::plain', payload: {} });
  expect(seen['a::plain']).toBeUndefined();
});

it('makes a turn part of the trace of a program, and a function of another program part of the turn', async () => {
  const rig = await openWithGateway();
  rig.model.plays(asks(agentCall('c1', 'a::b')), says('done'));
  const [one, other] = [await connect(urlOf(rig)), await connect(urlOf(rig))];
  let seen: TraceContext | undefined;
  one.registerFunction({ id: 'a::b' }, (_, context) => {
    seen = context.trace;
  });
  await one.trigger({ function_id: 'engine::workers::list', payload: {} });
  const payload = { message: 'go', model: 'scripted-1', options: { functions: { allow: ['a::b'] } } };
  const sent = await other.trigger<{ session_id: string; turn_id: string }>({
    function_id: 'harness::send',
    payload,
    trace: { traceparent: TRACEPARENT },
  });
  await rig.end(sent.turn_id);
  const trace = await other.trigger<TurnSpans>({ function_id: 'harness-traces::get', payload: { session_id: sent.session_id } });
  expect(trace).toMatchObject({ trace_id: TRACEPARENT.slice(3, 35), turn_id: sent.turn_id, status: 'completed' });
  const call = trace.spans.find(({ name }) => name === 'execute_tool a::b');
  expect(seen?.traceparent).toBe(`00-${trace.trace_id}-${call?.span_id}-01`);
});
