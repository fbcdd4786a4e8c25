import { createHash } from 'node:crypto';
import type { AgentFunction, AgentMessage } from '#libs/contracts';

/** Longest tool name that both vendors accept. */
const MAX_NAME = 64;
const HASH_LENGTH = 20;
const LEGAL = /^[a-zA-Z0-9_-]+$/;
/** Ends like a name that was made of a hash; no plainly written name may look so. */
const HASHED = /-h[0-9a-v]{20}$/;

const hash = (text: string): string => {
  const digest = createHash('sha256').update(text).digest();
  let bits = 0n;
  for (const byte of digest.subarray(0, 13)) bits = (bits << 8n) | BigInt(byte);
  return bits.toString(32).padStart(HASH_LENGTH, '0').slice(-HASH_LENGTH);
};

const slug = (id: string, room: number): string => id.replace(/[^a-zA-Z0-9]+/g, '_').slice(0, room) || 'f';

/** Writes `::` as `__` where that reads back to the same id; undefined where it does not. */
function plain(id: string): string | undefined {
  const name = id.replaceAll('::', '__');
  const reads = LEGAL.test(name) && name.length <= MAX_NAME && !HASHED.test(name) && name.replaceAll('__', '::') === id;
  return reads ? name : undefined;
}

/**
 * The name of a function on a vendor's wire: `shell::exec` is `shell__exec`; an id that cannot be written so, because of
 * other characters, its length or an underscore pair of its own, gets a readable start and a hash. It depends on the id
 * alone, and two ids never share a name.
 */
export const wireName = (id: string): string => plain(id) ?? `${slug(id, MAX_NAME - HASH_LENGTH - 2)}-h${hash(id)}`;

/** Reads names of a vendor's wire back into function ids, for the functions of one request and its history. */
export class ToolNames {
  private readonly ids = new Map<string, string>();

  constructor(tools: readonly AgentFunction[], messages: readonly AgentMessage[]) {
    for (const tool of tools) this.add(tool.name);
    for (const message of messages) {
      if (message.role !== 'assistant') continue;
      for (const block of message.content) if (block.type === 'function_call') this.add(block.function_id);
    }
  }

  /** The function id of a name. A name that the request does not know is read by the rule, so that an invented one is seen as it is. */
  functionId(name: string): string {
    return this.ids.get(name) ?? (HASHED.test(name) ? name : name.replaceAll('__', '::'));
  }

  private add(id: string): void {
    this.ids.set(wireName(id), id);
  }
}

/** A call id that a vendor accepts: `id` itself when it is legal and short enough, else one made of it that is always the same. */
export function wireCallId(id: string, limit: number): string {
  if (LEGAL.test(id) && id.length <= limit && !HASHED.test(id)) return id;
  return `${slug(id, limit - HASH_LENGTH - 2)}-h${hash(id)}`;
}
