import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { HookOutput, JsonValue } from '#libs/contracts';
import { agentCall, ScriptedModel, text } from '../support/scripted-model.js';
import { TurnRig } from '../support/turn-rig.js';

let rig: TurnRig;
afterEach(async () => {
  await rig.close();
});

const calling = (id: string, fn: string, payload: JsonValue): ScriptedModel =>
  new ScriptedModel({ content: [agentCall(id, fn, payload)] }, { content: [text('done')] });

describe('the data folder below the root of the file functions', () => {
  it.each([
    ['read', 'coder::read-file', { path: 'data/config/llm-router.yaml' }],
    ['rewritten', 'coder::create-file', { files: [{ path: 'data/config/confine.yaml', content: 'root: /\n' }] }],
    ['overwritten', 'coder::create-file', { files: [{ path: 'data/harness.db', content: 'junk', overwrite: true }] }],
    ['searched', 'coder::search', { query: 'api_key' }],
  ])('cannot be %s by a model', async (_what, fn, payload) => {
    const root = mkdtempSync(join(tmpdir(), 'harness-root-'));
    const dataDir = join(root, 'data');
    mkdirSync(join(dataDir, 'config'), { recursive: true });
    writeFileSync(join(dataDir, 'config', 'confine.yaml'), `root: ${root}\nnon_accessible_globs: []\n`);
    writeFileSync(join(dataDir, 'config', 'llm-router.yaml'), 'providers:\n  openai:\n    api_key: sk-of-the-operator\n');
    writeFileSync(join(root, 'open.txt'), 'nothing secret');
    rig = await TurnRig.open({ model: calling('c1', fn, payload), dataDir });
    const ended = await rig.turn('go');
    expect(ended.status).toBe('completed');
    const stored = JSON.stringify(await rig.entries(ended.session_id));
    expect(stored).not.toContain('sk-of-the-operator');
    expect(stored).not.toContain('"bytes_written":8');
    expect((await rig.turn('again', { session_id: ended.session_id, options: {} })).status).toBe('failed'); // nobody scripted it: the store is whole
    rmSync(root, { recursive: true, force: true });
  });
});

describe('an output schema of a model', () => {
  const spawn = (schema: JsonValue, answer: string): ScriptedModel =>
    new ScriptedModel(
      { content: [agentCall('c1', 'harness::spawn', { task: 'x', options: { output: { type: 'json', schema } } })] },
      ...Array.from({ length: 3 }, () => ({ content: [text(answer)] })),
      { content: [text('done')] },
    );

  it('that would be checked by a promise is refused', async () => {
    rig = await TurnRig.open({ model: spawn({ $async: true, type: 'object', required: ['zzz'] }, '{"v":1}') });
    const { session_id } = await rig.send('go');
    await expect.poll(async () => (await rig.results(session_id))[0]?.is_error).toBe(true);
    expect(JSON.stringify((await rig.results(session_id))[0]?.content)).toContain('$async');
  });

  it.each([
    ['pattern', { type: 'object', properties: { v: { type: 'string', pattern: '^(a+)+$' } } }, `{"v":"${'a'.repeat(44)}!"}`],
    [
      'references',
      {
        $defs: Object.fromEntries(
          Array.from({ length: 24 }, (_, i) => [
            `a${i}`,
            i === 23 ? { type: 'object', required: ['zzz'] } : { allOf: [{ $ref: `#/$defs/a${i + 1}` }, { $ref: `#/$defs/a${i + 1}` }] },
          ]),
        ),
        $ref: '#/$defs/a0',
      },
      '{"v":1}',
    ],
  ])('with costly %s does not hold up the process', async (_what, schema, answer) => {
    rig = await TurnRig.open({ model: spawn(schema as JsonValue, answer) });
    const started = performance.now();
    const { turn_id, session_id } = await rig.send('go');
    expect((await rig.end(turn_id)).status).toBe('completed');
    expect((await rig.results(session_id))[0]?.is_error).toBe(true);
    expect(performance.now() - started).toBeLessThan(10_000);
  });
});

describe('functions that call others', () => {
  it.each(['iii::queue::redrive', 'iii::queue::redrive_message', 'iii::queue::discard_message', 'iii::durable::publish', 'queue::define'])(
    '%s is never open to a model',
    async (fn) => {
      rig = await TurnRig.open({ model: calling('c1', fn, {}) });
      const { session_id } = await rig.turn('go');
      expect((await rig.results(session_id))[0]).toMatchObject({ is_error: true, details: { error: 'policy_denied' } });
    },
  );
});

describe('a hook that takes arguments away', () => {
  it.each([
    ['goes on', { decision: 'continue' }],
    ['holds', { decision: 'hold' }],
  ])('and %s is obeyed, whatever stands for nothing', async (_what, answer) => {
    rig = await TurnRig.open({ model: calling('c1', 'probe::run', { secret: 1 }) });
    const got = rig.function('probe::run');
    rig.function('gate::redact', () => ({ ...answer, mutations: { arguments: null } }) as unknown as HookOutput);
    rig.bind('harness::hook::pre-trigger', 'gate::redact');
    const { session_id, turn_id } = await rig.send('go');
    if (answer.decision === 'hold') {
      await rig.until(session_id, 'awaiting_functions');
      await rig.call('harness::function::resolve', { session_id, turn_id, function_call_id: 'c1', action: 'execute' });
    }
    await rig.end(turn_id);
    expect(JSON.stringify(got)).not.toContain('secret');
    expect(got).toHaveLength(1);
  });
});
