import type { SseEvent } from './vendor-server.js';

/** One block of an answer, in the words of no vendor. */
export type Said =
  | { text: string }
  | { thinking: string; signature?: string }
  | { redacted: string }
  | { call: string; id: string; args: unknown /** Sent instead of the JSON of `args`. */; raw?: string };

/** Cuts text into pieces of about `size` characters, never inside a surrogate pair. */
export function pieces(text: string, size = 7): string[] {
  const points = [...text];
  const cut: string[] = [];
  for (let at = 0; at < points.length; at += size) cut.push(points.slice(at, at + size).join(''));
  return cut;
}

export interface AnthropicOptions {
  stop?: string;
  /** Usage of `message_start` and of `message_delta`. */
  usage?: { start?: object; delta?: object };
  /** Leaves out everything from `message_delta` on. */
  cut?: boolean;
}

/** A Messages stream in Anthropic's format. */
export function anthropicStream(said: readonly Said[], options: AnthropicOptions = {}): SseEvent[] {
  const send = (data: { type: string; [key: string]: unknown }): SseEvent => ({ event: data.type, data });
  const stop = options.stop ?? (said.some((block) => 'call' in block) ? 'tool_use' : 'end_turn');
  const events: SseEvent[] = [
    send({
      type: 'message_start',
      message: {
        id: 'msg_01',
        type: 'message',
        role: 'assistant',
        model: 'claude-test',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 11, output_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, ...options.usage?.start },
      },
    }),
    send({ type: 'ping' }),
  ];
  for (const [index, block] of said.entries()) {
    const delta = (body: { type: string; [key: string]: unknown }): void =>
      void events.push(send({ type: 'content_block_delta', index, delta: body }));
    const begin = (content_block: object): void => void events.push(send({ type: 'content_block_start', index, content_block }));
    if ('text' in block) {
      begin({ type: 'text', text: '' });
      for (const text of pieces(block.text)) delta({ type: 'text_delta', text });
    } else if ('thinking' in block) {
      begin({ type: 'thinking', thinking: '', signature: '' });
      for (const thinking of pieces(block.thinking)) delta({ type: 'thinking_delta', thinking });
      if (block.signature !== undefined) delta({ type: 'signature_delta', signature: block.signature });
    } else if ('redacted' in block) {
      begin({ type: 'redacted_thinking', data: block.redacted });
    } else {
      begin({ type: 'tool_use', id: block.id, name: block.call, input: {} });
      delta({ type: 'input_json_delta', partial_json: '' });
      for (const partial_json of pieces(block.raw ?? JSON.stringify(block.args))) delta({ type: 'input_json_delta', partial_json });
    }
    events.push(send({ type: 'content_block_stop', index }));
  }
  if (options.cut === true) return events;
  events.push(
    send({
      type: 'message_delta',
      delta: { stop_reason: stop, stop_sequence: null },
      usage: { output_tokens: 42, ...options.usage?.delta },
    }),
  );
  events.push(send({ type: 'message_stop' }));
  return events;
}

export interface ChatOptions {
  finish?: string | null;
  usage?: object | null;
  done?: boolean;
  /** Name of the field that carries thinking. */
  reasoningField?: 'reasoning_content' | 'reasoning';
}

/** A chat completions stream in OpenAI's format. */
export function chatStream(said: readonly Said[], options: ChatOptions = {}): SseEvent[] {
  const chunk = (choices: unknown[], extra: object = {}): SseEvent => ({
    data: {
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1_700_000_000,
      model: 'gpt-test',
      system_fingerprint: null,
      choices,
      usage: null,
      ...extra,
    },
  });
  const delta = (body: object, finish: string | null = null): SseEvent =>
    chunk([{ index: 0, delta: body, logprobs: null, finish_reason: finish }]);
  const events: SseEvent[] = [delta({ role: 'assistant', content: '' })];
  let index = 0;
  for (const block of said) {
    if ('text' in block) for (const content of pieces(block.text)) events.push(delta({ content }));
    else if ('thinking' in block)
      for (const text of pieces(block.thinking)) events.push(delta({ [options.reasoningField ?? 'reasoning_content']: text }));
    else if ('call' in block) {
      events.push(delta({ tool_calls: [{ index, id: block.id, type: 'function', function: { name: block.call, arguments: '' } }] }));
      for (const text of pieces(block.raw ?? JSON.stringify(block.args)))
        events.push(delta({ tool_calls: [{ index, function: { arguments: text } }] }));
      index += 1;
    }
  }
  const finish = options.finish === undefined ? (index > 0 ? 'tool_calls' : 'stop') : options.finish;
  if (finish !== null) events.push(delta({}, finish));
  const usage = options.usage === undefined ? { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 } : options.usage;
  if (usage !== null && finish !== null) events.push(chunk([], { usage }));
  if (options.done !== false && finish !== null) events.push({ data: '[DONE]' });
  return events;
}

export interface ResponsesOptions {
  status?: 'completed' | 'incomplete' | 'failed';
  reason?: string;
  error?: { code: string; message: string };
  usage?: object;
  /** Leaves out the terminal event. */
  cut?: boolean;
}

/** A Responses stream in OpenAI's format. `redacted` is a reasoning item without a summary. */
export function responsesStream(said: readonly Said[], options: ResponsesOptions = {}): SseEvent[] {
  let sequence_number = 0;
  const send = (data: { type: string; [key: string]: unknown }): SseEvent => ({
    event: data.type,
    data: { ...data, sequence_number: sequence_number++ },
  });
  const response = (status: string, extra: object = {}): object => ({
    id: 'resp_1',
    object: 'response',
    created_at: 1_700_000_000,
    status,
    model: 'gpt-test',
    output: [],
    error: null,
    incomplete_details: null,
    usage: null,
    ...extra,
  });
  const events: SseEvent[] = [
    send({ type: 'response.created', response: response('in_progress') }),
    send({ type: 'response.in_progress', response: response('in_progress') }),
  ];
  for (const [output_index, block] of said.entries()) {
    const item = (body: { id: string; [key: string]: unknown }, deltas: SseEvent[], done: object): void => {
      events.push(
        send({ type: 'response.output_item.added', output_index, item: body }),
        ...deltas,
        send({ type: 'response.output_item.done', output_index, item: { ...body, ...done } }),
      );
    };
    if ('text' in block) {
      const id = `msg_${output_index}`;
      const at = { item_id: id, output_index, content_index: 0 };
      const deltas = [
        send({ type: 'response.content_part.added', ...at, part: { type: 'output_text', text: '', annotations: [] } }),
        ...pieces(block.text).map((delta) => send({ type: 'response.output_text.delta', ...at, delta })),
        send({ type: 'response.output_text.done', ...at, text: block.text }),
      ];
      item({ id, type: 'message', role: 'assistant', status: 'in_progress', content: [] }, deltas, {
        status: 'completed',
        content: [{ type: 'output_text', text: block.text, annotations: [] }],
      });
    } else if ('thinking' in block || 'redacted' in block) {
      const id = `rs_${output_index}`;
      const text = 'thinking' in block ? block.thinking : '';
      const at = { item_id: id, output_index, summary_index: 0 };
      const deltas =
        text === ''
          ? []
          : [
              send({ type: 'response.reasoning_summary_part.added', ...at, part: { type: 'summary_text', text: '' } }),
              ...pieces(text).map((delta) => send({ type: 'response.reasoning_summary_text.delta', ...at, delta })),
              send({ type: 'response.reasoning_summary_text.done', ...at, text }),
            ];
      const encrypted_content = 'redacted' in block ? block.redacted : (block.signature ?? null);
      item({ id, type: 'reasoning', summary: [] }, deltas, {
        summary: text === '' ? [] : [{ type: 'summary_text', text }],
        encrypted_content,
      });
    } else {
      const id = `fc_${output_index}`;
      const text = block.raw ?? JSON.stringify(block.args);
      const at = { item_id: id, output_index };
      const deltas = [
        ...pieces(text).map((delta) => send({ type: 'response.function_call_arguments.delta', ...at, delta })),
        send({ type: 'response.function_call_arguments.done', ...at, name: block.call, arguments: text }),
      ];
      item({ id, type: 'function_call', status: 'in_progress', call_id: block.id, name: block.call, arguments: '' }, deltas, {
        status: 'completed',
        arguments: text,
      });
    }
  }
  if (options.cut === true) return events;
  const status = options.status ?? 'completed';
  const usage = options.usage ?? {
    input_tokens: 30,
    input_tokens_details: { cached_tokens: 10 },
    output_tokens: 15,
    output_tokens_details: { reasoning_tokens: 6 },
    total_tokens: 45,
  };
  events.push(
    send({
      type: `response.${status}`,
      response: response(status, {
        usage,
        error: options.error ?? null,
        incomplete_details: options.reason === undefined ? null : { reason: options.reason },
      }),
    }),
  );
  return events;
}
