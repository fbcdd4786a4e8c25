/** What a turn is told of where it runs. All of it is fixed when the turn starts. */
export interface PromptRuntime {
  session_id: string;
  /** Where relative paths of the file functions begin; null when there is no such place. */
  working_directory: string | null;
  /** Globs of function ids; null = nothing may be called. */
  policy: { readonly allow: readonly string[]; readonly deny: readonly string[] } | null;
  /** 0 for a turn that a person or program started, 1 for its sub-agents, and so on. */
  depth: number;
}

/** At most so many allow globs are listed. */
export const LISTED_ALLOWS = 30;

/** Control characters and line breaks as escapes, so that a value from outside stays inside its line. */
const inline = (value: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  value.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

const listed = (globs: readonly string[]): string => globs.map((glob) => `\`${inline(glob)}\``).join(', ');

/** False when the policy leaves no function at all. */
export const mayCall = (policy: PromptRuntime['policy']): policy is NonNullable<PromptRuntime['policy']> =>
  policy !== null && policy.allow.length > 0 && !policy.deny.includes('*');

function policyLines(policy: PromptRuntime['policy']): string[] {
  if (!mayCall(policy)) {
    return ['- Functions: none may be called in this turn. Answer from what is in the conversation.'];
  }
  const allow = [...new Set(policy.allow)];
  const deny = [...new Set(policy.deny)];
  const more = allow.length > LISTED_ALLOWS ? `, and ${allow.length - LISTED_ALLOWS} more` : '';
  const lines: string[] = [];
  if (!allow.includes('*'))
    lines.push(`- Functions that may be called (\`*\` stands for any text): ${listed(allow.slice(0, LISTED_ALLOWS))}${more}.`);
  if (deny.length > 0) lines.push(`- Functions that are refused${allow.includes('*') ? '' : ' all the same'}: ${listed(deny)}.`);
  return lines;
}

/** The last section of a system prompt. The same input gives the same bytes: nothing in it depends on the clock or on a step. */
export function runtimeSection(runtime: PromptRuntime): string {
  const lines = [`- Session: ${inline(runtime.session_id)}`];
  if (runtime.working_directory !== null) {
    lines.push(`- Working directory: ${inline(runtime.working_directory)} (relative paths begin here)`);
  }
  if (runtime.depth > 0) {
    lines.push(
      `- You are a sub-agent (depth ${runtime.depth}): your last message goes to the agent that started you, which sees nothing else of your work.`,
    );
  }
  return ['# This turn', '', ...lines, ...policyLines(runtime.policy)].join('\n');
}
