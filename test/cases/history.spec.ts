import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ContentBlock, SendRequest } from '#libs/contracts';
import type { FeedEvent } from '#libs/turn';
import type { TurnRig } from '../support/turn-rig.js';
import { MODELS, type VendorModel, VendorRig } from './vendors.js';

const MEGABYTE = 1_048_576;
const image = (megabytes: number, mime = 'image/png'): ContentBlock => ({
  type: 'image',
  mime,
  data: 'A'.repeat(Math.floor((megabytes * MEGABYTE) / 4) * 4),
});
const call = (fn: string, id: string): { call: string; id: string; args: object } => ({
  call: 'agent_trigger',
  id,
  args: { function: fn, description: 'looks', payload: {} },
});
type Delta = Extract<FeedEvent, { type: 'thinking_delta' | 'text_delta' }>;
const streamed =
  (turnId: string, type: Delta['type']) =>
  (event: FeedEvent): event is Delta =>
    event.type === type && event.turn_id === turnId;

describe.each(MODELS)('what a vendor gets of a session that went wrong: $name', (vendor) => {
  let bench: VendorRig;
  let rig: TurnRig;
  let session = '';
  let count = 0;
  let images: ContentBlock[] = [];
  beforeAll(async () => {
    bench = await VendorRig.open('max_result_bytes: 0\n');
    rig = bench.rig;
    rig.function('probe::quick', () => 'done');
    rig.function('probe::empty', () => '');
    rig.function('probe::images', () => ({ content: images }));
    rig.function('probe::hangs', () => new Promise(() => undefined));
  });
  beforeEach(() => {
    bench.server.reset();
    count += 1;
    session = `s_${vendor.model}_${count}`;
  });
  afterAll(async () => {
    expect(rig.faults()).toEqual([]);
    await bench.close();
  });
  const by = ({ provider, model }: VendorModel): Partial<SendRequest> => ({
    session_id: session,
    provider,
    model,
    options: { functions: { allow: ['probe::*'] }, thinking_level: 'low' },
  });
  /** Sends a further message, which the vendor must take, and gives the body that it got. */
  const goOn = async (to = vendor): Promise<string> => {
    bench.answers({ events: to.events([{ text: 'Going on.' }]) });
    expect(await rig.turn('go on', by(to))).toMatchObject({ status: 'completed', result: 'Going on.', result_error: null });
    expect(bench.violations()).toEqual([]);
    return JSON.stringify(bench.server.lastBody);
  };

  it('C16 thinking that was stopped half way is never sent back', async () => {
    bench.answers({ events: vendor.events([{ thinking: 'a half-finished thought' }], true), ending: 'stall' });
    const { turn_id } = await rig.send('think', by(vendor));
    if (vendor.model === 'gpt-4o') await bench.server.received(1);
    else await rig.seen('a thought', streamed(turn_id, 'thinking_delta'));
    await rig.stop(session);
    expect(await rig.end(turn_id)).toMatchObject({ status: 'cancelled' });
    expect(await goOn()).not.toContain('half-finished');
  });

  it('C16 signed thinking before calls of which one was stopped does no harm, also to another vendor', async () => {
    const said = [{ thinking: 'look twice', signature: 'SIGNED+/=' }, call('probe::quick', 'call_1'), call('probe::hangs', 'call_2')];
    bench.answers({ events: vendor.events(said) });
    const { turn_id } = await rig.send('look', by(vendor));
    await rig.seen(
      'the second call',
      (event): event is FeedEvent => event.type === 'call_started' && event.turn_id === turn_id && event.function_id === 'probe::hangs',
    );
    await rig.stop(session);
    await rig.end(turn_id);
    await goOn();
    for (const other of MODELS.filter((one) => one !== vendor)) expect(await goOn(other)).not.toContain('SIGNED+/=');
    await goOn();
  });

  it('C17 answers, results and hook messages without a word in them are never sent', async () => {
    const hook = rig.bind('harness::hook::pre-generate', 'gate::blank');
    rig.function('gate::blank', () => ({
      decision: 'continue',
      mutations: { append_messages: [{ role: 'user', content: [{ type: 'text', text: ' \n' }], timestamp: 1 }] },
    }));
    for (const nothing of ['', '  ']) {
      bench.answers({ events: vendor.events(nothing === '' ? [] : [{ text: nothing }]) });
      expect(await rig.turn('say nothing', by(vendor))).toMatchObject({ status: 'completed', result_error: null });
      await goOn();
    }
    bench.answers({ events: vendor.events([call('probe::empty', 'call_1')]) });
    expect(await goOn()).toContain('(no output)');
    hook.unregister();
  });

  const wrong: [string, () => ContentBlock[]][] = [
    ['of a type that no vendor takes', () => [image(0.001, 'image/bmp')]],
    ['larger than the vendor takes', () => [image(6)]],
    ['small each, but too large together', () => Array.from({ length: 13 }, () => image(2))],
  ];
  // The limits of the other vendor are so large that they are tried on its adapter alone.
  it.each(wrong.slice(0, vendor.provider === 'anthropic' ? 3 : 1))(
    'C18 images that are %s become a note, and the session goes on',
    async (_how, make) => {
      images = make();
      bench.answers({ events: vendor.events([call('probe::images', 'call_1')]) });
      expect(await goOn()).toContain('was left out');
      images = [];
      expect((await goOn()).length).toBeLessThan(30 * MEGABYTE);
    },
  );
});
