import { afterEach, describe, expect, it } from 'vitest';
import type { ProviderStreamRequest } from '#libs/contracts';
import { messagesRequest } from '../../libs/local/src/providers/anthropic/request.js';
import { chatBody } from '../../libs/local/src/providers/openai/chat-request.js';
import { OFFICIAL_URL } from '../../libs/local/src/providers/openai/options.js';
import { responsesBody } from '../../libs/local/src/providers/openai/responses-request.js';
import type { VendorRun } from '../../libs/local/src/providers/shared/provider.js';
import { MODELS, VendorRig } from '../cases/vendors.js';
import { says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';

let rig: TurnRig | undefined;
afterEach(async () => {
  await rig?.close();
  rig = undefined;
});

/** The requests of a turn in each of two sessions, under settings. */
async function requests(config = ''): Promise<ProviderStreamRequest[]> {
  rig = await TurnRig.open({ config });
  for (const session_id of ['s_one', 's_two']) {
    rig.model.plays(says('Right.'));
    await rig.turn('hi', { session_id });
  }
  return rig.model.requests;
}
const run = (request: ProviderStreamRequest, api_url = 'http://vendor'): VendorRun =>
  ({ request: { ...request, model: 'claude-sonnet-4-5' }, model: undefined, api_url, max_tokens: 1_000, draft: { warnings: [] } }) as never;

describe('the beginning of requests', () => {
  it('C33 is the same in every session up to a boundary, and is marked there for a vendor with a cache', async () => {
    const [one, two] = (await requests()) as [ProviderStreamRequest, ProviderStreamRequest];
    expect(one.system_sections?.map(({ text }) => text).join('')).toBe(one.system_prompt);
    expect(one.system_sections?.[0]).toEqual({ ...two.system_sections?.[0], cache_boundary: true });
    expect(one.system_sections?.[1]?.text).not.toBe(two.system_sections?.[1]?.text);
    expect(one.tools).toEqual(two.tools);
    const { body } = messagesRequest(run(one));
    const system = body.system as { text: string; cache_control?: object }[];
    expect(system.map(({ text }) => text)).toEqual(one.system_sections?.map(({ text }) => text));
    expect(system.every(({ cache_control }) => cache_control !== undefined)).toBe(true);
    expect(JSON.stringify(body.tools)).not.toContain('cache_control'); // the mark after the first section covers them
    expect(JSON.stringify(body).split('cache_control').length - 1).toBeLessThanOrEqual(4);
    expect([one.session_id, two.session_id]).toEqual(['s_one', 's_two']);
  });

  it('is named for the cache of OpenAI by its session, for that vendor alone', async () => {
    const [one] = (await requests()) as [ProviderStreamRequest];
    for (const body of [chatBody, responsesBody]) {
      expect(body(run(one, OFFICIAL_URL))).toMatchObject({ prompt_cache_key: 's_one' });
      expect(body(run(one))).not.toHaveProperty('prompt_cache_key');
      const long = body(run({ ...one, session_id: 'ä'.repeat(200) }, OFFICIAL_URL)).prompt_cache_key;
      expect(long).toMatch(/^[\w-]{1,64}$/);
    }
  });

  it.each(MODELS)('is marked for $name as the setting says', async (vendor) => {
    for (const marked of [true, false]) {
      const bench = await VendorRig.open(`prompt_cache_sections: ${marked}\n`);
      bench.answers({ events: vendor.events([{ text: 'Right.' }]) });
      const { provider, model } = vendor;
      expect(await bench.rig.turn('hi', { provider, model })).toMatchObject({ status: 'completed', result: 'Right.' });
      expect(bench.violations()).toEqual([]);
      // The key is for OpenAI itself, and the server of this test is another one.
      expect(JSON.stringify(bench.server.lastBody).includes('cache')).toBe(marked && provider === 'anthropic');
      await bench.close();
    }
  });

  it('is not marked when the setting says so', async () => {
    const [one] = (await requests('prompt_cache_sections: false\n')) as [ProviderStreamRequest];
    expect(one.system_sections ?? null).toBeNull();
    const body = chatBody(run({ ...one, provider_options: { cache: false } }, OFFICIAL_URL));
    expect(JSON.stringify(body)).not.toContain('cache');
  });

  it('is one text when its parts are not the whole of it, as after a hook that has rewritten it', async () => {
    const [one] = (await requests()) as [ProviderStreamRequest];
    const { body } = messagesRequest(run({ ...one, system_prompt: 'Other.' }));
    expect(body.system).toEqual([{ type: 'text', text: 'Other.', cache_control: { type: 'ephemeral' } }]);
  });
});
