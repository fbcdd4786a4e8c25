import type { AgentFunction, JsonObject } from '#libs/contracts';
import { howToAllow, listedFunctions, report } from './extract.js';
import { type Intent, intentsOf } from './intents.js';
import { code, hasAgentTrigger, type Part, type Prompt, type Reply, SUBMIT_RESULT, short, type Turn, turnOf } from './reply.js';
import { valueFor } from './schema-value.js';
import { isScript, parseScript, type ScriptStep } from './script.js';

const DISCOVERY = 'engine::functions::list';
const FOOTER = '*I am the demo provider: fixed rules, not a language model.*';

/** Decides what to answer. The same prompt always gets the same answer. */
export function replyTo(prompt: Prompt): Reply {
  const turn = turnOf(prompt.messages);
  const reply = isScript(turn.request) ? script(prompt, turn) : agent(prompt, turn);
  const thinks = prompt.thinkingLevel !== null && !reply.parts.some((part) => part.type === 'thinking');
  return thinks
    ? { ...reply, parts: [{ type: 'thinking', text: thought(reply, turn), pauseMs: reply.parts[0]?.pauseMs }, ...reply.parts] }
    : reply;
}

function thought(reply: Reply, turn: Turn): string {
  const calls = reply.parts.flatMap((part) => (part.type === 'call' ? [part.call.function_id] : []));
  const asked = `The request is "${short(turn.request, 80)}".`;
  if (calls.length > 0) return `${asked} Next I call ${calls.join(' and ')}.`;
  return turn.results.length > 0 ? `${asked} The results are there, so I report them.` : `${asked} I can answer it at once.`;
}

/** Carries out the step of a script that is due. */
function script(prompt: Prompt, turn: Turn): Reply {
  const steps = parseScript(turn.request);
  const step: ScriptStep = steps[turn.generation] ?? { parts: [], end: null };
  if (step.end === null) return answer(prompt, step.parts, scriptReport(turn, step.parts));
  if (!('stop_reason' in step.end) || step.end.stop_reason !== 'function_call' || prompt.tools.length > 0)
    return { parts: step.parts, end: step.end };
  const parts = step.parts.filter((part) => part.type !== 'call');
  return answer(
    prompt,
    parts,
    `No function is offered in this turn, so I called none. To change that, send the message with \`options.functions\`, e.g. \`{"allow": ["*"]}\` (on the command line: \`--allow "*"\`).\n\n${FOOTER}`,
  );
}

/** The closing words of a script: what its calls gave; nothing after a script that only speaks. */
function scriptReport(turn: Turn, parts: readonly Part[]): string {
  const { results } = turn;
  if (results.length === 0) return parts.some((part) => part.type === 'text') ? '' : `The script is done. ${FOOTER}`;
  const lines = results.map(
    (result) => `- ${code(result.function_id)}: ${result.is_error ? 'error' : 'ok'}, ${short(result.text, 160) || 'no output'}`,
  );
  const failed = results.filter((result) => result.is_error).length;
  const made = `The script made ${results.length} ${results.length === 1 ? 'call' : 'calls'}${failed === 0 ? '' : `; ${failed} failed`}:`;
  return `${made}\n\n${lines.join('\n')}\n\n${FOOTER}`;
}

/** Acts on a request in plain words: finds functions, calls them, reports. */
function agent(prompt: Prompt, turn: Turn): Reply {
  if (prompt.tools.length === 0 || isOnlySubmit(prompt.tools)) return answer(prompt, [], withoutTools(turn.request));
  const intents = intentsOf(turn.request);
  if (intents.length === 0) return answer(prompt, [], smallTalk(turn.request));
  const offered = hasAgentTrigger(prompt.tools) ? discovered(turn) : prompt.tools.map((tool) => tool.name);
  if (offered === 'unknown') return discover(intents);
  const able = offered === 'any' ? intents : intents.filter((intent) => intent.calls.every((call) => offered.includes(call.function_id)));
  const made = new Set(turn.results.map(({ function_id, arguments: args }) => JSON.stringify([function_id, args])));
  const due =
    turn.generation > intents.length
      ? undefined
      : able.find((intent) => intent.calls.some((call) => !made.has(JSON.stringify([call.function_id, call.arguments]))));
  if (due !== undefined) {
    const parts: Part[] = due.calls.map((call) => ({ type: 'call', call }));
    return { parts: [{ type: 'text', text: `I will ${due.purpose}.` }, ...parts], end: { stop_reason: 'function_call' } };
  }
  const missing = intents.filter((intent) => !able.includes(intent));
  return answer(prompt, [], agentReport(turn, intents, missing));
}

/** The functions that may be called, once that was asked; `any` when the answer was no list. */
function discovered(turn: Turn): readonly string[] | 'any' | 'unknown' {
  const listing = turn.results.find((result) => result.function_id === DISCOVERY);
  if (listing === undefined) return turn.generation === 0 ? 'unknown' : 'any';
  return listing.is_error ? 'any' : [...listedFunctions(listing), DISCOVERY];
}

function discover(intents: readonly Intent[]): Reply {
  const workers = new Set(intents.flatMap((intent) => intent.calls.map((call) => call.function_id.split('::')[0] ?? '')));
  const [worker] = workers;
  const only = intents.some((intent) => intent.calls.some((call) => call.function_id === DISCOVERY));
  const args: JsonObject = workers.size === 1 && worker !== undefined && !only ? { prefix: `${worker}::` } : {};
  const purpose = intents.length === 1 ? (intents[0]?.purpose ?? 'do this') : 'do this';
  return {
    parts: [
      {
        type: 'text',
        text: only ? 'I look up the functions that I may call.' : `To ${purpose} I first look up which functions I may call.`,
      },
      { type: 'call', call: { function_id: DISCOVERY, arguments: args, description: 'List the functions that may be called' } },
    ],
    end: { stop_reason: 'function_call' },
  };
}

function agentReport(turn: Turn, intents: readonly Intent[], missing: readonly Intent[]): string {
  const asked = new Set(intents.flatMap((intent) => intent.calls.map((call) => call.function_id)));
  const told = turn.results.filter((result) => asked.has(result.function_id)).map(report);
  const absent = missing.map((intent) => {
    const id = intent.calls[0]?.function_id ?? '';
    return `I could not ${intent.purpose}: ${code(id)} is not among the functions that I may call in this turn. ${howToAllow(id)}`;
  });
  return [...told, ...absent, FOOTER].join('\n\n');
}

const isOnlySubmit = (tools: readonly AgentFunction[]): boolean => tools.every((tool) => tool.name === SUBMIT_RESULT);

/** Ends the turn: in words, or with a JSON value where one is asked for and the script has not given it. */
function answer(prompt: Prompt, parts: readonly Part[], closing: string): Reply {
  const hasText = parts.some((part) => part.type === 'text');
  const plain =
    closing
      .replace(FOOTER, '')
      .replace(/[*`>#]/g, '')
      .trim() || 'Done.';
  const pauseMs = parts[0]?.pauseMs;
  const submit = prompt.tools.find((tool) => tool.name === SUBMIT_RESULT);
  if (submit !== undefined) {
    const call = { function_id: SUBMIT_RESULT, arguments: valueFor(submit.parameters, plain), description: 'Hand in the result' };
    return { parts: [...parts, { type: 'call', call, pauseMs }], end: { stop_reason: 'function_call' } };
  }
  if (prompt.responseFormat !== null && !hasText) {
    const text = JSON.stringify(valueFor(prompt.responseFormat.schema, plain));
    return { parts: [...parts, { type: 'text', text, pauseMs }], end: { stop_reason: 'end' } };
  }
  const words: Part[] = closing === '' ? [] : [{ type: 'text', text: hasText ? `\n\n${closing}` : closing, pauseMs }];
  return { parts: [...parts, ...words], end: { stop_reason: 'end' } };
}

const size = (text: string): string => {
  const words = text.split(/\s+/).filter((word) => word !== '').length;
  return `${words} ${words === 1 ? 'word' : 'words'}`;
};

function withoutTools(request: string): string {
  if (request === '') return `There is no message to answer.\n\n${FOOTER}`;
  const wants = intentsOf(request).map((intent) => intent.purpose);
  const start = `You wrote ${size(request)}: "${short(request, 600)}"`;
  const next =
    wants.length === 0
      ? 'With functions allowed I can read, list and search files, fetch pages and run commands; `/help` shows how to script me.'
      : `To ${wants.join(' and to ')} I would need functions, and none is offered in this turn. Send the message with \`options.functions\`, e.g. \`{"allow": ["*"]}\` (on the command line: \`--allow "*"\`).`;
  return `${start}\n\n${next}\n\n${FOOTER}`;
}

const smallTalk = (request: string): string =>
  [
    `You wrote ${size(request)}: "${short(request, 300)}"`,
    'I act on requests such as "read README.md and tell me what this project is", "list the files in src", "search for TODO", "show the tree", "fetch https://example.com", "run `date`" or "write notes.txt with hello". `/help` shows how to script me.',
    FOOTER,
  ].join('\n\n');
