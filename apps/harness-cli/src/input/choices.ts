import type { ExposeMode, Mode, SessionStatus, SystemPromptStrategy, ThinkingLevel } from '#libs/contracts';

/** What the options with a fixed set of values accept. */
export const EXPOSE: ExposeMode[] = ['agent_trigger', 'native'];
export const MODES: Mode[] = ['plan', 'ask', 'agent'];
export const STRATEGIES: SystemPromptStrategy[] = ['enrich', 'override'];
export const THINKING: ThinkingLevel[] = ['minimal', 'low', 'medium', 'high', 'xhigh'];
export const SESSION_STATUS: SessionStatus[] = ['idle', 'working', 'done', 'error'];
/** How `--approve` treats the calls of a session. */
export const APPROVE = ['ask', 'auto', 'never'] as const;
export const SHELLS = ['bash', 'zsh', 'fish'] as const;
