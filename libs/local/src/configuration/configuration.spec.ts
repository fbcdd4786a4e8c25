import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { Test } from '@nestjs/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HarnessError } from '#libs/contracts';
import { defaultSettings, SETTINGS, type SettingsSource } from '#libs/turn';
import { approvalDefaults } from '../approval/settings.js';
import { CONFINE_SETTINGS, type ConfineSettings, confineDefaults } from '../confine/settings.js';
import { defaultRouterSettings, ROUTER_SETTINGS, type RouterSettingsSource } from '../router/settings.js';
import { ConfigurationModule, LiveConfiguration, loadConfiguration } from './index.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'config-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const write = (name: string, content: string | Uint8Array): string => {
  const file = join(dir, name);
  writeFileSync(file, content, { mode: 0o600 });
  return file;
};
/** The message of the refusal; fails when the configuration is accepted. */
function refusal(env: { [name: string]: string } = {}): string {
  try {
    loadConfiguration(dir, env);
  } catch (error) {
    expect(error).toBeInstanceOf(HarnessError);
    expect((error as HarnessError).code).toBe('configuration/invalid');
    return (error as HarnessError).detail;
  }
  throw new Error('the configuration was accepted');
}
const harness = (content: string, env: { [name: string]: string } = {}) => {
  write('harness.yaml', content);
  return loadConfiguration(dir, env).harness;
};
const router = (content: string, env: { [name: string]: string } = {}) => {
  write('llm-router.yaml', content);
  return loadConfiguration(dir, env).router;
};

describe('defaults', () => {
  const defaults = {
    harness: defaultSettings,
    router: defaultRouterSettings,
    confine: confineDefaults,
    approval: approvalDefaults,
    faults: [],
  };

  it('hold without a folder and without files', () => {
    expect(loadConfiguration(join(dir, 'none'))).toEqual(defaults);
    expect(loadConfiguration(dir)).toEqual(defaults);
  });

  it.each([
    ['nothing', ''],
    ['blank lines', '\r\n \n'],
    ['comments', '# default_max_turns: 3\n'],
    ['a byte order mark', '\ufeff'],
    ['a document start', '---\n'],
    ['an explicit null', 'null\n'],
    ['an empty mapping', '{}'],
  ])('hold for files with only %s', (_case, content) => {
    for (const id of ['harness', 'llm-router', 'confine', 'approval']) write(`${id}.yaml`, content);
    expect(loadConfiguration(dir)).toEqual(defaults);
  });

  it('hold for sections whose fields are all commented out', () => {
    const settings = router('providers:\n  # openai:\nrouting_heuristics:\nsettings:\n  # retry_max: 3\n');
    expect(settings).toEqual({ ...defaultRouterSettings, routing_heuristics: [] });
    expect(router('providers:\n  openai:\n').providers).toEqual({
      openai: { api_key: null, api_url: null, max_tokens: null, system_prompt: null },
    });
  });

  it('are not shared: one reading cannot change the next', () => {
    loadConfiguration(dir).router.settings.retry_max = 99;
    expect(loadConfiguration(dir).router.settings.retry_max).toBe(2);
  });
});

describe('reading', () => {
  it('keeps the defaults of the fields that are not given', () => {
    expect(harness('default_max_turns: 3\ndefault_model: m1\n')).toEqual({ ...defaultSettings, default_max_turns: 3, default_model: 'm1' });
    expect(router('settings:\n  retry_max: 0\n').settings).toEqual({ ...defaultRouterSettings.settings, retry_max: 0 });
  });

  it.each([
    ['CRLF', 'default_max_turns: 3\r\ndefault_functions:\r\n  allow:\r\n    - "coder::*"\r\n'],
    ['a byte order mark', '\ufeffdefault_max_turns: 3\ndefault_functions: { allow: ["coder::*"] }\n'],
    ['no line end at the end', 'default_functions: { allow: ["coder::*"] }\ndefault_max_turns: 3'],
    ['anchors', 'default_max_turns: &n 3\nmax_depth: *n\ndefault_functions: { allow: ["coder::*"] }'],
  ])('takes %s', (_case, content) => {
    expect(harness(content)).toMatchObject({ default_max_turns: 3, default_functions: { allow: ['coder::*'] } });
  });

  it('reads `off` as a word and null as deny all', () => {
    expect(harness('call_reconciliation: off\ndefault_filesystem_root: off\ndefault_functions: null\n')).toMatchObject({
      call_reconciliation: 'off',
      default_filesystem_root: 'off',
      default_functions: null,
    });
  });

  it.each([
    [0, 0],
    [1, 1024],
    [1023, 1024],
    [1024, 1024],
    [5000, 5000],
  ])('takes max_result_bytes %i as %i', (given, meant) => {
    expect(harness(`max_result_bytes: ${given}`).max_result_bytes).toBe(meant);
  });

  it('takes the root of confine.yaml, else that of harness.yaml', () => {
    write('harness.yaml', 'default_filesystem_root: /a');
    expect(loadConfiguration(dir).confine.root).toBe('/a');
    write('confine.yaml', 'root: /b\nallow_private_addresses: true');
    expect(loadConfiguration(dir).confine).toEqual({ ...confineDefaults, root: '/b', allow_private_addresses: true });
  });

  it.each(['* * * * * *', '0 */5 9-17 ? JAN-jun mon,wed,fri', '0 0 0 1/2 * 7 2030', '5-30/5 0,30 * * * *'])(
    'takes the cron expression %s',
    (cron) => {
      expect(harness(`sweep_expression: "${cron}"`).sweep_expression).toBe(cron);
    },
  );
});

describe('environment references', () => {
  it('takes the value, else the default, with the type that YAML gives the result', () => {
    const content = [
      'default_max_turns: ${TURNS:16}',
      'max_depth: ${DEPTH:2}',
      'prompt_cache_sections: ${CACHE:false}',
      'default_model: ${MODEL:}',
      'default_provider: "${PROVIDER:}x${PROVIDER}"',
      'projects_file_path: ${HOME_DIR:/data}/a-${MODEL:b:c}.json',
    ].join('\n');
    expect(harness(content, { TURNS: '7', PROVIDER: '9' })).toMatchObject({
      default_max_turns: 7,
      max_depth: 2,
      prompt_cache_sections: false,
      default_model: null,
      default_provider: '9x9',
      projects_file_path: '/data/a-b:c.json',
    });
  });

  it('keeps a quoted scalar text, and other uses of $ as they are', () => {
    expect(harness('default_model: "${N:12}"').default_model).toBe('12');
    expect(harness('default_model: "$X {y} ${} ${1a} $"').default_model).toBe('$X {y} ${} ${1a} $');
  });

  it('takes what expands to nothing as an empty field, quoted or not', () => {
    const none = { api_key: null, api_url: null, max_tokens: null, system_prompt: null };
    expect(router('providers:\n  a: { api_key: "${K:}", api_url: "${U:}" }\n  b:\n    api_key: ${K:}\n').providers).toEqual({
      a: none,
      b: none,
    });
    expect(router('providers: { a: { api_key: "${K:}" } }', { K: 'key\n' }).providers['a']?.api_key).toBe('key');
  });

  it('never lets a value bring structure of its own', () => {
    expect(harness('default_model: ${M}', { M: 'x\nmax_depth: 9' })).toMatchObject({ default_model: 'x\nmax_depth: 9', max_depth: 3 });
  });

  it('names a variable that is needed but not set, and its line', () => {
    const file = write('harness.yaml', 'max_depth: 1\ndefault_model: ${NO_SUCH_MODEL}\n');
    expect(refusal()).toBe(
      `${file}:2: refers to the environment variable NO_SUCH_MODEL, which is not set; give it a default as in \${NO_SUCH_MODEL:default}`,
    );
  });

  it('does not expand keys', () => {
    write('harness.yaml', '"${K}": 1');
    expect(refusal({ K: 'max_depth' })).toContain('${K} is not a known field');
  });
});

describe('refusals', () => {
  it.each([
    ['a number as text', 'max_depth: "3"', 'max_depth must be a whole number from 0 to 100, but is text'],
    ['a fraction', 'max_depth: 1.5', 'max_depth must be a whole number from 0 to 100'],
    ['out of range', 'default_max_turns: 0', 'default_max_turns must be a whole number from 1 to 1000000'],
    ['infinity', 'idem_ttl_secs: .inf', 'idem_ttl_secs must be a whole number from 1 to 315360000'],
    ['more than a timer can wait', 'dispatch_timeout_ms: 9999999999', 'dispatch_timeout_ms must be a whole number from 1 to 2147483647'],
    ['nothing', 'max_children:', 'max_children must be a whole number from 0 to 10000, but is empty'],
    ['a list', 'max_children: [1]', 'max_children must be a whole number from 0 to 10000, but is a list'],
    ['not a flag', 'prompt_cache_sections: "yes"', 'prompt_cache_sections must be true or false, but is text'],
    ['an unknown word', 'durability: memory', 'durability must be one of power, process'],
    ['blank text', 'default_model: " "', 'default_model must be the id of a model or null, but is blank'],
    ['an unknown field', 'default_max_turn: 3', 'default_max_turn is not a known field'],
    ['an unknown inner field', 'default_functions: { permit: [] }', 'default_functions.permit is not a known field'],
    ['a section that is none', 'default_functions: all', 'default_functions must be a mapping of fields, but is text'],
    ['a section that is a list', 'default_functions: [a]', 'default_functions must be a mapping of fields, but is a list'],
    ['a glob list that is none', 'lift_never: "*"', 'lift_never must be a list of globs of function ids, but is text'],
    [
      'an empty glob',
      'lift_never: [""]',
      'lift_never must be a list of globs of function ids; item 1 must be a glob of function ids, but is blank',
    ],
    [
      'an inverted glob',
      'default_functions: { allow: ["a", "!b"] }',
      'default_functions.allow must be a list of globs of function ids; item 2',
    ],
    ['a number in a list', 'default_functions: { deny: [1] }', 'item 1 must be a glob of function ids, but is a number'],
    ['too few cron fields', 'sweep_expression: "* * * * *"', 'but has 5'],
    ['a cron field out of range', 'sweep_expression: "0 61 * * * *"', 'its minute is not one (0 to 59'],
    ['a cron word out of place', 'sweep_expression: "0 0 0 mon * *"', 'its day of the month is not one'],
    ['a backward cron range', 'sweep_expression: "0 0 9-5 * * *"', 'its hour is not one'],
    ['a cron step of nothing', 'sweep_expression: "*/0 * * * * *"', 'its second is not one'],
    ['a prototype key', '__proto__: { max_depth: 1 }', '__proto__ is not a known field'],
    ['a constructor key', 'default_functions: { constructor: 1 }', 'constructor is not a known field'],
    ['a list as the file', '- max_depth', 'must be a mapping of fields (`name: value`)'],
    ['text as the file', 'max_depth', 'must be a mapping of fields (`name: value`)'],
    ['a duplicate key', 'max_depth: 1\nmax_depth: 2', 'is not valid YAML: duplicate key at column 1'],
    ['broken YAML', 'default_functions: { allow: [', 'is not valid YAML: '],
    ['two documents', 'max_depth: 1\n---\nmax_depth: 2', 'is not valid YAML: multiple docs'],
    ['an unknown tag', 'max_depth: !js/function 1', 'is not valid YAML: '],
    ['an unknown alias', 'max_depth: *none', 'has aliases that cannot be resolved'],
  ])('%s', (_case, content, expected) => {
    const file = write('harness.yaml', content);
    const message = refusal();
    expect(message).toContain(expected);
    expect(message.startsWith(file)).toBe(true);
    expect(message.split('\n')).toHaveLength(1);
  });

  it('tells the line of a wrong field, also of an inner one', () => {
    const file = write('harness.yaml', 'max_depth: 1\n\ndefault_functions:\n  deny: []\n  expose: all\n');
    expect(refusal()).toBe(`${file}:5: default_functions.expose must be one of agent_trigger, native`);
  });

  it('names every fault of every file at once', () => {
    const first = write('harness.yaml', 'max_depth: -1\nmax_children: many\n');
    const second = write('llm-router.yaml', 'settings: { retry_max: x }\n');
    const third = write('confine.yaml', 'root: 7\ncommand_env: ["A B"]\nnon_accessible_globs: ["{a"]\n');
    const lines = refusal().split('\n');
    expect(lines.map((line) => line.split(' ')[1])).toEqual(
      expect.arrayContaining(['max_depth', 'max_children', 'settings.retry_max', 'root', 'command_env', 'non_accessible_globs']),
    );
    expect(lines).toHaveLength(6);
    for (const file of [first, second, third]) expect(lines.some((line) => line.startsWith(file))).toBe(true);
  });

  it.each([
    ['default_provider: ""', 'default_provider must be the id of a provider or null, but is blank'],
    ['providers: [openai]', 'providers must be a mapping of provider ids to their fields'],
    ['providers: { openai: sk-secret-value }', 'providers must have a mapping of fields for each provider; openai has something else'],
    ['providers: { "a b": {} }', 'providers must have ids of letters'],
    ['providers: { openai: { key: sk-secret-value } }', 'providers.openai.key is not a known field'],
    ['providers: { openai: { api_key: 123 } }', 'providers.openai.api_key must be the API key as text or null, but is a number'],
    [
      'providers: { openai: { api_url: "ftp://x" } }',
      'providers.openai.api_url must be an http or https URL without a user and password or null',
    ],
    ['providers: { openai: { api_url: "https://u:sk-secret-value@x" } }', 'providers.openai.api_url must be an http or https URL'],
    ['routing_heuristics: { a: b }', 'routing_heuristics must be a list of a pattern and a provider each, but is a mapping'],
    ['routing_heuristics: [{ pattern: "a*" }]', 'routing_heuristics.0.provider must be the id of a provider, but is empty'],
    ['routing_heuristics: [claude]', 'routing_heuristics'],
    ['settings: { first_byte_timeout_ms: 0 }', 'settings.first_byte_timeout_ms must be a whole number from 1 to 2147483647 or null'],
  ])('llm-router.yaml: %s', (content, expected) => {
    write('llm-router.yaml', content);
    const message = refusal();
    expect(message).toContain(expected);
    expect(message).not.toContain('sk-secret-value');
  });

  it('a file that is not UTF-8, or not a file', () => {
    const file = write('harness.yaml', Buffer.from('\ufeffmax_depth: 1', 'utf16le'));
    expect(refusal()).toBe(`${file}: is not UTF-8 text; save it as UTF-8`);
    rmSync(file);
    mkdirSync(file);
    expect(refusal()).toBe(`${file}: must be a plain file`);
  });

  it('a link that leads round in a circle, rather than taking the defaults', () => {
    symlinkSync(join(dir, 'harness.yaml'), join(dir, 'harness.yaml'));
    expect(refusal()).toContain('cannot be read (ELOOP)');
  });

  it.each(['api_key: *sk-secret-value', 'api_key: "sk-secret-value', 'api_key: !sk-secret-value x', '{ sk-secret-value'])(
    'a syntax fault shows nothing of the file: %s',
    (line) => {
      write('llm-router.yaml', `providers:\n  openai:\n    ${line}\n`);
      const message = refusal();
      expect(message).toContain('llm-router.yaml:');
      expect(message).not.toContain('secret');
    },
  );
});

describe('keys', () => {
  const KEY = 'sk-secret-value';

  it('are there for the router but hidden from whatever prints the settings', () => {
    const settings = router('providers:\n  openai: { api_key: "${OPENAI:}", api_url: "http://localhost:1/v1", max_tokens: 5 }\n', {
      OPENAI: KEY,
    });
    const provider = settings.providers['openai'];
    expect(provider?.api_key).toBe(KEY);
    expect(provider).toMatchObject({ api_url: 'http://localhost:1/v1', max_tokens: 5 });
    for (const shown of [JSON.stringify(settings), inspect(settings, { depth: 9 }), `${String(provider)}`])
      expect(shown).not.toContain(KEY);
    expect(JSON.stringify(settings)).toContain('[hidden]');
  });

  it.skipIf(process.platform === 'win32')('draw a warning only when they stand in a file that others can read', () => {
    const file = write('llm-router.yaml', `providers:\n  openai:\n    api_key: ${KEY}\n`);
    expect(loadConfiguration(dir).faults).toEqual([]);
    chmodSync(file, 0o644);
    expect(loadConfiguration(dir).faults).toEqual([{ file, field: '', problem: expect.stringContaining('mode 644') as string }]);
    write('llm-router.yaml', 'providers:\n  openai:\n    api_key: ${OPENAI:}\n');
    expect(loadConfiguration(dir, {}).faults).toEqual([]);
  });
});

describe('files that are not read', () => {
  it('draw a warning when they look like an entry', () => {
    for (const name of ['harness.yml', 'LLM-Router.yaml', 'confine.json', 'other.yaml', 'harness.yaml.bak']) write(name, 'max_depth: 1');
    expect(loadConfiguration(dir).faults.map(({ file, problem }) => [file.slice(dir.length + 1), problem])).toEqual([
      ['LLM-Router.yaml', 'is not read; the file must be called llm-router.yaml'],
      ['confine.json', 'is not read; the file must be called confine.yaml'],
      ['harness.yml', 'is not read; the file must be called harness.yaml'],
    ]);
  });
});

describe('ConfigurationModule', () => {
  it('gives the settings to other modules', async () => {
    write('harness.yaml', 'max_depth: 1');
    write('llm-router.yaml', 'default_provider: demo');
    write('confine.yaml', 'root: /srv');
    const app = await Test.createTestingModule({ imports: [ConfigurationModule.forRoot({ configDir: dir })] }).compile();
    expect(app.get<SettingsSource>(SETTINGS).current().max_depth).toBe(1);
    expect(app.get<RouterSettingsSource>(ROUTER_SETTINGS).current().default_provider).toBe('demo');
    expect(app.get<ConfineSettings>(CONFINE_SETTINGS).current().root).toBe('/srv');
    await app.close();
  });

  it('takes a configuration that was read before', async () => {
    const configuration = new LiveConfiguration(dir);
    const app = await Test.createTestingModule({ imports: [ConfigurationModule.forRoot({ configuration })] }).compile();
    expect(app.get<SettingsSource>(SETTINGS).current()).toBe(configuration.current.harness);
    await app.close();
  });

  it('stops the start when a file is not valid', async () => {
    write('harness.yaml', 'max_depth: x');
    const start = Test.createTestingModule({ imports: [ConfigurationModule.forRoot({ configDir: dir })] }).compile();
    await expect(start).rejects.toThrow(/^configuration\/invalid: .*max_depth must be/);
  });
});

describe('approval.yaml', () => {
  it('gives the mode of sessions and what auto lets pass', () => {
    write('approval.yaml', 'default_mode: auto\nauto_allow: ["git::log"]\n');
    expect(loadConfiguration(dir).approval).toEqual({ default_mode: 'auto', auto_allow: ['git::log'] });
  });

  it('is refused with a mode that there is not', () => {
    write('approval.yaml', 'default_mode: ask\n');
    expect(refusal()).toContain('approval.yaml:1: default_mode must be one of manual, auto, full');
  });
});
