import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openRuntime } from '#libs/local';
import { connect, openWithGateway, synced, urlOf } from './remote.js';

describe('siblings in other processes', () => {
  it('one takes the place of ours that was left out', async () => {
    const rig = await openWithGateway({ siblings: '-state' });
    await expect(rig.call('state::get', { scope: 's', key: 'k' })).rejects.toThrow(/function_not_found/);
    const client = connect(urlOf(rig), { workerName: 'my-state' });
    client.registerFunction('state::get', async ({ key }: { key: string }) => ({ mine: key }));
    await synced(client);
    expect(await rig.call('state::get', { scope: 's', key: 'k' })).toEqual({ mine: 'k' });
  });

  it('none can take an id that is there, or one of the harness', async () => {
    const rig = await openWithGateway();
    const client = connect(urlOf(rig));
    const rejected: { code: string; function_id: string }[] = [];
    const { ws } = client as unknown as { ws: { on(event: 'message', listener: (data: Buffer) => void): void } };
    ws.on('message', (data) => {
      const message = JSON.parse(data.toString()) as { type: string; code: string; function_id: string };
      if (message.type === 'registrationrejected') rejected.push(message);
    });
    for (const id of ['state::get', 'harness::send', 'harness::mine', 'engine::mine']) {
      client.registerFunction(id, async () => ({ stolen: true }));
    }
    await synced(client);
    expect(rejected.map(({ code, function_id }) => [function_id, code])).toEqual([
      ['state::get', 'FUNCTION_NAMESPACE_CONFLICT'],
      ['harness::send', 'FORBIDDEN'],
      ['harness::mine', 'FORBIDDEN'],
      ['engine::mine', 'FORBIDDEN'],
    ]);
    expect(await rig.call('state::get', { scope: 's', key: 'k' })).toBeNull();
  });

  it('any of them can be left out, and a wrong name is told', async () => {
    for (const siblings of ['-approval,-coder,-context,-router,-shell,-state,-web', 'shell, coder']) {
      const dataDir = mkdtempSync(join(tmpdir(), 'harness-siblings-'));
      const runtime = await openRuntime({ dataDir, role: 'worker', siblings });
      const { functions } = await runtime.bus.trigger<{ functions: { function_id: string }[] }>({
        function_id: 'engine::functions::list',
        payload: {},
      });
      const has = (prefix: string): boolean => functions.some(({ function_id }) => function_id.startsWith(prefix));
      expect(['shell::', 'state::', 'router::', 'session::'].map(has)).toEqual([siblings.startsWith('shell'), false, false, true]);
      await runtime.close();
      rmSync(dataDir, { recursive: true });
    }
    await expect(openRuntime({ dataDir: '/nowhere', role: 'reader', siblings: '-shel' })).rejects.toThrow(/HARNESS_SIBLINGS names "shel"/);
    await expect(openRuntime({ dataDir: '/nowhere', role: 'reader', siblings: 'web,-shell' })).rejects.toThrow(/with and without/);
  });
});
