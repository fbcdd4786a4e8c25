import { afterEach, describe, expect, it } from 'vitest';
import { gate } from '../support/gate.js';
import { agentCall, type Scripted, ScriptedModel, text } from '../support/scripted-model.js';
import { asks, says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';
import { traceOf, tree } from './support.js';

let rig: TurnRig;
afterEach(async () => {
  expect(rig.faults()).toEqual([]);
  await rig.close();
});
const open = async (...script: Scripted[]): Promise<void> => {
  rig = await TurnRig.open({ model: new ScriptedModel(...script) });
};

describe('the trace of a turn', () => {
  it('has its steps, generations, provider calls, function calls and hooks, each in its place', async () => {
    await open(asks(agentCall('c1', 'a::b', { secret: 'of nobody else' })), says('done: of nobody else'));
    rig.function('a::b', () => ({ secret: 'of nobody else' }));
    rig.on('harness::hook::pre-trigger', 'h::pre', () => null);
    rig.on('harness::hook::post-generate', 'h::seen', () => null);
    const { session_id, turn_id } = await rig.turn('of nobody else');
    const trace = await traceOf(rig, session_id);
    expect(trace).toMatchObject({ session_id, turn_id, trace_id: turn_id.slice(2) });
    const spans = trace?.spans ?? [];
    expect(tree(spans)).toEqual([
      'invoke_agent',
      '  step 0',
      '    assemble',
      '    chat scripted-1',
      '      provider::scripted::stream',
      '    hook h::seen',
      '    execute_tool a::b',
      '      hook h::pre',
      '  step 1',
      '    assemble',
      '    chat scripted-1',
      '      provider::scripted::stream',
      '    hook h::seen',
    ]);
    expect(spans[0]?.attributes).toMatchObject({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.request.model': 'scripted-1',
      'gen_ai.usage.input_tokens': 20,
      'gen_ai.usage.output_tokens': 10,
      'harness.status': 'completed',
      'harness.steps': 2,
      'harness.calls': 1,
    });
    expect(spans[3]?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'scripted',
      'gen_ai.response.finish_reasons': ['function_call'],
      'gen_ai.usage.input_tokens': 10,
    });
    expect(spans[6]?.attributes).toMatchObject({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'a::b',
      'gen_ai.tool.call.id': 'c1',
    });
    for (const { start_ms, end_ms, parent_id } of spans) {
      const parent = spans.find(({ span_id }) => span_id === parent_id);
      expect(end_ms).toBeGreaterThanOrEqual(start_ms);
      if (parent !== undefined) expect(start_ms).toBeGreaterThan(parent.start_ms - 1.5);
    }
    expect(JSON.stringify(trace)).not.toContain('of nobody else');
  });

  it('is one with the traces of its sub-agents, and is marked when something below fails', async () => {
    await open();
    rig.model.fallback = ({ messages, session_id }) => {
      const isChild = JSON.stringify(messages[0]).includes('the part');
      if (messages.at(-1)?.role === 'function_result') return says('done');
      expect(session_id).toBeDefined();
      return asks(isChild ? agentCall('c1', 'a::broken') : agentCall('c1', 'harness::spawn', { task: 'the part' }));
    };
    rig.function('a::broken', () => {
      throw new Error('it is broken');
    });
    const { session_id } = await rig.turn('the whole');
    const trace = await traceOf(rig, session_id);
    expect(tree(trace?.spans ?? []).filter((line) => !/assemble|provider|chat/.test(line))).toEqual([
      'invoke_agent !descendant_failed',
      '  step 0',
      '  execute_tool harness::spawn !descendant_failed',
      '    invoke_agent !descendant_failed',
      '      step 0 !descendant_failed',
      '        execute_tool a::broken !function_failed',
      '      step 1',
      '  step 1',
    ]);
    expect(new Set(trace?.spans.map((span) => span.session_id)).size).toBe(2);
    expect(JSON.stringify(trace)).not.toContain('it is broken');
  });

  it('shows what is under way and what waits, from the record alone', async () => {
    const held = gate();
    await open(asks(agentCall('c1', 'a::slow'), agentCall('c2', 'a::held')), says('done'));
    rig.function('a::slow', async () => {
      await held.promise;
      return null;
    });
    rig.function('a::held');
    rig.on('harness::hook::pre-trigger', 'h::hold', ({ call }: { call: { function_id: string } }) =>
      call.function_id === 'a::held' ? { decision: 'hold' } : null,
    );
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'running');
    expect(tree((await traceOf(rig, session_id))?.spans ?? [])).toContain('invoke_agent …');
    held.open();
    await rig.until(session_id, 'awaiting_functions');
    const waiting = tree((await traceOf(rig, session_id))?.spans ?? []);
    expect(waiting).toContain('  execute_tool a::held …');
    expect(waiting[0]).toBe('invoke_agent …');
    rig.function('a::extra');
    await rig.call('harness::function::trigger', { session_id, turn_id, call: { id: 'x1', function_id: 'a::extra', arguments: {} } });
    expect(tree((await traceOf(rig, session_id))?.spans ?? []).join('\n')).toContain('\n  execute_tool a::extra\n    hook h::hold');
    await rig.release(session_id, turn_id, 'c2');
    await rig.end(turn_id);
    const spans = (await traceOf(rig, session_id, turn_id))?.spans ?? [];
    expect(tree(spans).filter((line) => line.includes('execute_tool'))).toEqual([
      '    execute_tool a::slow',
      '  execute_tool a::extra',
      '    execute_tool a::held',
    ]);
    const call = spans.find(({ name }) => name === 'execute_tool a::held');
    const step = spans.find(({ span_id }) => span_id === call?.parent_id);
    // The call began when it was first asked for, in the step before it was parked.
    expect(call?.start_ms).toBeLessThan(step?.start_ms ?? 0);
  });

  it('goes on with the trace of whoever sends, and is passed on to functions, hooks and providers', async () => {
    await open(asks(agentCall('c1', 'a::b')), { content: [text('done')] });
    const seen: { [id: string]: (string | undefined)[] } = {};
    for (const id of ['a::b', 'h::pre'])
      rig.runtime.bus.registerFunction({ id }, (_, { trace }) => {
        seen[id] = [...(seen[id] ?? []), trace?.traceparent];
        return null;
      });
    rig.bind('harness::hook::pre-trigger', 'h::pre');
    const trace_id = '0af7651916cd43dd8448eb211c80319c';
    const { session_id, turn_id } = await rig.runtime.bus.trigger<{ session_id: string; turn_id: string }>({
      function_id: 'harness::send',
      payload: { message: 'go', model: 'scripted-1', options: { functions: { allow: ['*'] } } },
      trace: { traceparent: `00-${trace_id}-b7ad6b7169203331-01` },
    });
    await rig.end(turn_id);
    const trace = await traceOf(rig, session_id);
    expect(trace?.trace_id).toBe(trace_id);
    expect(trace?.spans[0]).toMatchObject({ name: 'invoke_agent', parent_id: 'b7ad6b7169203331' });
    const idOf = (name: string): string | undefined => trace?.spans.find((span) => span.name === name)?.span_id;
    expect(seen).toEqual({
      'a::b': [`00-${trace_id}-${idOf('execute_tool a::b')}-01`],
      'h::pre': [`00-${trace_id}-${idOf('hook h::pre')}-01`],
    });
  });

  it('of a stopped turn is not marked, of a failed one it is', async () => {
    await open(asks(agentCall('c1', 'a::slow')));
    const began = gate();
    rig.function('a::slow', async () => {
      began.open();
      await new Promise(() => undefined);
    });
    const { session_id, turn_id } = await rig.send('go');
    await began.promise;
    await rig.stop(session_id);
    await rig.end(turn_id);
    const spans = (await traceOf(rig, session_id))?.spans ?? [];
    expect(spans[0]?.attributes['harness.status']).toBe('cancelled');
    expect(spans.filter(({ error }) => error !== null)).toEqual([]);
    const failed = await rig.turn('nobody scripted this', { session_id: 'second' });
    expect(failed.status).toBe('failed');
    const lines = tree((await traceOf(rig, 'second'))?.spans ?? []);
    expect(lines[0]).toBe('invoke_agent !llm.permanent');
    expect(lines).toContain('    chat scripted-1 !llm.permanent');
  });

  it('can be left out: then there is what the record says, and calls are still part of the turn', async () => {
    rig = await TurnRig.open({ model: new ScriptedModel(asks(agentCall('c1', 'a::b')), says('done')), config: 'trace_turns: 0\n' });
    const seen: (string | undefined)[] = [];
    rig.runtime.bus.registerFunction({ id: 'a::b' }, (_, { trace }) => void seen.push(trace?.traceparent));
    const { session_id } = await rig.turn('go');
    const trace = await traceOf(rig, session_id);
    expect(tree(trace?.spans ?? [])).toEqual(['invoke_agent']);
    expect(seen).toEqual([`00-${trace?.trace_id}-${trace?.spans[0]?.span_id}-01`]);
  });

  it('is kept for the latest turns, and is for no model', async () => {
    rig = await TurnRig.open({ config: 'trace_turns: 3\n', role: 'worker' });
    rig.model.fallback = () => says('done');
    const turns: { session_id: string; turn_id: string }[] = [];
    for (let i = 0; i < 8; i += 1) turns.push(await rig.turn('go', { session_id: `s${i}` }));
    expect(await traceOf(rig, 's7', turns[7]?.turn_id)).not.toBeNull();
    expect(await traceOf(rig, 'absent')).toBeNull();
    expect(await traceOf(rig, 's7', turns[0]?.turn_id)).toBeNull();
    rig.model.plays(asks(agentCall('c1', 'harness-traces::get', { session_id: 's7' })), says('done'));
    const { session_id } = await rig.turn('look');
    expect(await rig.results(session_id)).toMatchObject([{ is_error: true, details: { error: 'policy_denied' } }]);
  });
});
