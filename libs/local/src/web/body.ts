import { TextDecoder } from 'node:util';
import { FirstBytes } from '../confine/bytes.js';

/** Reads at most `limit` bytes of a response and gives the rest up. */
export async function readBody(stream: ReadableStream<Uint8Array> | null, limit: number): Promise<{ bytes: Buffer; truncated: boolean }> {
  if (stream === null) return { bytes: Buffer.alloc(0), truncated: false };
  const reader = stream.getReader();
  const kept = new FirstBytes(limit);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { bytes: kept.bytes(), truncated: false };
    if (kept.push(value) < value.length) {
      await reader.cancel();
      return { bytes: kept.bytes(), truncated: true };
    }
  }
}

/** How many brackets of a JSON text are open at once, at most. */
export function nestingOf(json: string): number {
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < json.length; at++) {
    switch (json.charCodeAt(at)) {
      case 0x22: // a string: on to its end
        for (at++; at < json.length && json.charCodeAt(at) !== 0x22; at++) if (json.charCodeAt(at) === 0x5c) at++;
        break;
      case 0x5b:
      case 0x7b:
        deepest = Math.max(deepest, ++depth);
        break;
      case 0x5d:
      case 0x7d:
        depth--;
        break;
      default:
    }
  }
  return deepest;
}

/** Type of a response in lower case, without parameters. */
export const mediaType = (header: string | null): string => (header ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';

/** Text of a body in the charset that its header, or an HTML page itself, names; UTF-8 when neither does. */
export function decodeText(bytes: Buffer, contentType: string | null): string {
  const named = /charset\s*=\s*"?([\w.:-]+)/i.exec(contentType ?? '')?.[1];
  const inPage = mediaType(contentType).includes('html')
    ? /<meta[^>]{0,200}charset\s*=\s*["']?([\w.:-]+)/i.exec(bytes.toString('latin1', 0, 2_048))?.[1]
    : undefined;
  const decoder = decoderFor(named ?? inPage ?? 'utf-8');
  const text = decoder.decode(bytes);
  return decoder.encoding === 'windows-1252'
    ? text.replace(/[\u0080-\u009f]/g, (char) => WINDOWS_1252.charAt(char.charCodeAt(0) - 0x80))
    : text;
}

/** What windows-1252 has at 0x80 to 0x9f. Some versions of Node decode it as ISO-8859-1, which has control characters there. */
const WINDOWS_1252 = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ';

function decoderFor(label: string): TextDecoder {
  try {
    return new TextDecoder(label);
  } catch (error) {
    if (error instanceof RangeError) return new TextDecoder('utf-8');
    throw error;
  }
}
