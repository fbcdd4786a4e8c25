import { newSessionId, type SendOptions, type SendRequest } from '#libs/contracts';
import type { EmbeddedRuntime } from '#libs/local';
import { HarnessCommand, type ParsedOptions } from '../cli/command.js';
import { Command, Help, Option } from '../cli/decorators.js';
import type { ExitCode } from '../cli/exit.js';
import { APPROVE, EXPOSE, MODES, STRATEGIES, THINKING } from '../input/choices.js';
import { messageAmongGlobs, readMessage } from '../input/message.js';
import type { SendInput } from '../input/send.input.js';
import { append, textOrFile, wholeNumber } from '../input/values.js';
import { cut } from '../render/format.js';
import { sanitizeLine } from '../render/sanitize.js';
import { JsonTurnView } from '../render/turn-json.js';
import { TextTurnView } from '../render/turn-text.js';
import { chooseModel, readCatalog } from '../turn/choose-model.js';
import { LiveTurn, type Prepared } from '../turn/live-turn.js';

const EXAMPLES = `
Without a policy every call is denied. A glob knows one special character: * stands for any run of characters.
With --approve ask (or auto) a call waits for your answer: on the terminal, or from another one by \`harness-cli approve\`. Where no
terminal is attached the command waits for that; --no-wait leaves at once. A call that nobody decides about in half an hour times out.
The answer goes to standard output, everything else to standard error. Ctrl-C stops the turn, a second Ctrl-C leaves at once.

Examples:
  harness-cli send "read README.md and tell me what this project is" --allow 'coder::*' 'engine::functions::*'
  harness-cli send "tidy the docs" --allow 'coder::*' --deny 'coder::update*' --max-turns 20
  harness-cli send '/call coder::read-file {"path":"README.md"}' --provider demo --allow 'coder::read-file'
  git diff | harness-cli send --session s_review --system @review.txt
  harness-cli send "sum it up" --session s_review --json | jq -r 'select(.type == "text_delta").delta'
  harness-cli send "what is left to do?" > answer.txt`;

/** `send`: gives harness a message and watches the turn run. */
@Command({
  name: 'send',
  arguments: '[message...]',
  description: 'Send a message and watch the turn run',
  argsDescription: { message: 'the message; with - or nothing it is read from standard input' },
})
export class SendCommand extends HarnessCommand {
  @Option({ flags: '-s, --session <id>', description: 'go on with this session, or begin one under this id' })
  session(id: string): string {
    return id;
  }
  @Option({ flags: '-m, --model <id>', description: 'the model (default: the configured one, else that of the provider)' })
  model(id: string): string {
    return id;
  }
  @Option({ flags: '-p, --provider <id>', description: 'the provider (default: the configured one, else the first with a key, else demo)' })
  provider(id: string): string {
    return id;
  }
  @Option({ flags: '--allow <glob...>', description: 'functions that the model may call; * is any run of characters' })
  allow(glob: string, before: unknown): string[] {
    return append(glob, before);
  }
  @Option({ flags: '--deny <glob...>', description: 'functions that it may not call although they are allowed' })
  deny(glob: string, before: unknown): string[] {
    return append(glob, before);
  }
  @Option({
    flags: '--approve <when>',
    description: 'from now on in this session, ask before calls: each, those that may change something, or none',
    choices: [...APPROVE],
  })
  approve(when: string): string {
    return when;
  }
  @Option({ flags: '--expose <how>', description: 'how the model sees functions', choices: EXPOSE })
  expose(how: string): string {
    return how;
  }
  @Option({ flags: '--system <text|@file>', description: 'a system prompt of your own' })
  system(text: string): string {
    return text;
  }
  @Option({ flags: '--strategy <how>', description: 'add the system prompt to the built-in one, or replace that', choices: STRATEGIES })
  strategy(how: string): string {
    return how;
  }
  @Option({ flags: '--mode <mode>', description: 'what the model is to do', choices: MODES })
  mode(mode: string): string {
    return mode;
  }
  @Option({ flags: '--max-turns <n>', description: 'generations that the turn may take' })
  maxTurns(n: string): number | string {
    return wholeNumber(n);
  }
  @Option({ flags: '--thinking <level>', description: 'how much the model may think', choices: THINKING })
  thinking(level: string): string {
    return level;
  }
  @Option({ flags: '--title <text>', description: 'title of a new session (default: the beginning of the message)' })
  title(text: string): string {
    return text;
  }
  @Option({ flags: '--no-wait', description: 'store the message for a worker to run, print the session id and leave' })
  wait(): boolean {
    return false;
  }
  @Option({ flags: '--json', description: 'print one JSON event per line, and nothing else' })
  json(): boolean {
    return true;
  }
  @Help('after')
  examples(): string {
    return EXAMPLES;
  }

  protected async execute(args: string[], options: ParsedOptions): Promise<ExitCode> {
    const [{ checked }, { SendInput: Input }] = await Promise.all([import('../input/validate.js'), import('../input/send.input.js')]);
    const { words, allow, deny } = messageAmongGlobs(args, options, this.cli.argv);
    const input = checked(Input, { ...options, allow, deny });
    const message = await readMessage(words, this.cli.io.stdin);
    const system = input.system === undefined ? undefined : await textOrFile('--system', input.system);
    const view = input.json
      ? new JsonTurnView(this.cli.stdout, (text) => this.cli.screen.note(text))
      : new TextTurnView(this.cli.screen, this.cli.err, this.cli.invocation);
    const live = new LiveTurn(this.cli, view);
    try {
      if (view instanceof TextTurnView) view.opening();
      return await this.cli.withRuntime(input.wait ? 'client' : 'reader', async (runtime) => {
        const prepared = await prepare(runtime, input, message, system);
        return await (input.wait ? live.run(runtime, prepared) : live.leaveToWorker(runtime, prepared, input.json));
      });
    } finally {
      if (view instanceof JsonTurnView) await view.drained();
      live.close();
    }
  }
}

const MODE = { ask: 'manual', auto: 'auto', never: 'full' } as const;

/** A title for a new session: the beginning of its first message. */
const titleOf = (message: string): string => cut(sanitizeLine(message.trimStart().split('\n')[0] ?? ''), 60);

async function prepare(runtime: EmbeddedRuntime, input: SendInput, message: string, system: string | undefined): Promise<Prepared> {
  const { default_model, default_provider } = runtime.settings.current();
  const choice = chooseModel(await readCatalog(runtime), input, { model: default_model, provider: default_provider });
  const policy = input.allow !== undefined || input.deny !== undefined || input.expose !== undefined;
  const options: SendOptions = {
    ...(policy
      ? { functions: { allow: input.allow ?? [], deny: input.deny ?? [], ...(input.expose === undefined ? {} : { expose: input.expose }) } }
      : {}),
    ...(input.maxTurns === undefined ? {} : { max_turns: input.maxTurns }),
    ...(input.mode === undefined ? {} : { mode: input.mode }),
    ...(system === undefined ? {} : { system_prompt: system }),
    ...(input.strategy === undefined ? {} : { system_prompt_strategy: input.strategy }),
    ...(input.thinking === undefined ? {} : { thinking_level: input.thinking }),
  };
  const sessionId = input.session ?? (input.approve === undefined ? undefined : newSessionId());
  // Before the message: so no call of the turn can come first.
  if (sessionId !== undefined && input.approve !== undefined)
    await runtime.bus.trigger({ function_id: 'approval::set-mode', payload: { session_id: sessionId, mode: MODE[input.approve] } });
  const request: SendRequest = {
    message,
    model: choice.model,
    provider: choice.provider,
    ...(sessionId === undefined ? {} : { session_id: sessionId }),
    session: { title: input.title ?? titleOf(message) },
    options,
  };
  return { request, choice, deniesAll: input.allow === undefined, silent: input.json };
}
