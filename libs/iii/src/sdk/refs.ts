import type { StreamChannelRef } from '#libs/contracts';

/**
 * Turns the channel ends that the SDK makes of the references in a payload back into references, which is what our
 * schemas describe and what can be passed on. An end that was never used has no socket yet, so nothing is taken twice.
 */
export function withRefs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withRefs);
  if (typeof value !== 'object' || value === null) return value;
  const ref = refOf(value);
  if (ref !== null) return ref;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, withRefs(part)]));
}

function refOf(value: object): StreamChannelRef | null {
  const kind = value.constructor?.name;
  if ((kind !== 'ChannelWriter' && kind !== 'ChannelReader') || Object.getPrototypeOf(value) === Object.prototype) return null;
  const address = (value as { url?: unknown }).url;
  if (typeof address !== 'string') return null;
  const url = new URL(address);
  return {
    channel_id: decodeURIComponent(url.pathname.split('/').at(-1) ?? ''),
    access_key: url.searchParams.get('key') ?? '',
    direction: url.searchParams.get('dir') === 'read' ? 'read' : 'write',
  };
}
