import { type HarnessSettings } from '#libs/turn';
import { type ApprovalDefaults } from '../../approval/settings.js';
import { type ConfineValues } from '../../confine/settings.js';
import { type RouterSettings } from '../../router/settings.js';
import { ApprovalFields } from './approval.js';
import { ConfineFields } from './confine.js';
import { HarnessFields, harnessSettings } from './harness.js';
import { RouterFields, routerSettings } from './router.js';

/** One entry of the configuration: a YAML file of the same name, the class of its fields, and what they mean. */
export interface ConfigurationEntry<Fields extends object, Settings> {
  /** Id of the entry; its file is `<id>.yaml`. */
  id: string;
  name: string;
  description: string;
  fields: new () => Fields;
  settings(fields: Fields): Settings;
}

export const harnessEntry: ConfigurationEntry<HarnessFields, HarnessSettings> = {
  id: 'harness',
  name: 'Harness',
  description: 'How turns run: limits, times, the policy of sub-agents, durability.',
  fields: HarnessFields,
  settings: harnessSettings,
};
export const routerEntry: ConfigurationEntry<RouterFields, RouterSettings> = {
  id: 'llm-router',
  name: 'Router',
  description: 'Providers of models, how a model finds its provider, times and tries of a chat.',
  fields: RouterFields,
  settings: routerSettings,
};
export const confineEntry: ConfigurationEntry<ConfineFields, ConfineValues> = {
  id: 'confine',
  name: 'Confinement',
  description: 'Where the file, shell and web functions may go, and how much they return.',
  fields: ConfineFields,
  settings: (fields) => ({ ...fields }),
};

export const approvalEntry: ConfigurationEntry<ApprovalFields, ApprovalDefaults> = {
  id: 'approval',
  name: 'Approval',
  description: 'Which calls of a model a person is asked about.',
  fields: ApprovalFields,
  settings: (fields) => ({ ...fields }),
};

/** The ids of all entries. */
export const entryIds: readonly string[] = [harnessEntry.id, routerEntry.id, confineEntry.id, approvalEntry.id];
