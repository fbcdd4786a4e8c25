import type { ExposeMode, Mode, OutputContract, SystemPromptStrategy } from '#libs/contracts';
import { mayCall, type PromptRuntime, runtimeSection } from './runtime.js';
import { type TextName, text } from './texts.js';

/** What a system prompt is made of. */
export interface SystemPromptInput {
  /** Null leaves the mode's section out. */
  mode: Mode | null;
  /** `enrich` adds `custom` to the built-in prompt, `override` puts it in its place. */
  strategy: SystemPromptStrategy;
  /** The caller's own text; a blank one counts as none, and then `override` replaces nothing. */
  custom: string | null;
  expose: ExposeMode;
  /** `json` adds how the result is to be delivered, whatever the strategy. */
  output?: OutputContract['type'];
  runtime: PromptRuntime;
}

/** A system prompt, with how much of it at its start is the same for every session with the same options. */
export interface SystemPrompt {
  system_prompt: string;
  /** In UTF-16 code units: `system_prompt.slice(0, stable_prefix_length)` is the part worth caching. */
  stable_prefix_length: number;
}

const MODES: Record<Mode, TextName> = { agent: 'mode-agent', ask: 'mode-ask', plan: 'mode-plan' };
const CALLING: Record<ExposeMode, TextName> = { agent_trigger: 'calling-agent-trigger', native: 'calling-native' };

const GAP = '\n\n';

function builtIn(input: SystemPromptInput): string[] {
  return [
    text('identity'),
    ...(mayCall(input.runtime.policy) ? [text(CALLING[input.expose])] : []),
    ...(input.mode === null ? [] : [text(MODES[input.mode])]),
  ];
}

/**
 * Builds the system prompt of a turn: identity, how to call, mode, the caller's text, the output contract; then, after the
 * stable prefix, the section on this turn. A pure function of its input (beside the prompt texts, which are read once), so
 * that every step of a turn sends the same bytes.
 */
export function buildSystemPrompt(input: SystemPromptInput): SystemPrompt {
  const custom = input.custom === null || input.custom.trim() === '' ? null : input.custom.trim();
  const replaced = custom !== null && input.strategy === 'override';
  const stable = [
    ...(replaced ? [] : builtIn(input)),
    ...(custom === null ? [] : [custom]),
    ...(input.output === 'json' ? [text('output-json')] : []),
  ].join(GAP);
  return { system_prompt: `${stable}${GAP}${runtimeSection(input.runtime)}`, stable_prefix_length: stable.length };
}
