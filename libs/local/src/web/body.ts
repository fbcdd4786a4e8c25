import { TextDecoder } from 'node:util';

/** Reads at most `limit` bytes of a response and gives the rest up. */
export async function readBody(stream: ReadableStream<Uint8Array> | null, limit: number): Promise<{ bytes: Buffer; truncated: boolean }> {
  if (stream === null) return { bytes: Buffer.alloc(0), truncated: false };
  const reader = stream.getReader();
  const chunks: Buffer[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { bytes: Buffer.concat(chunks), truncated: false };
    const room = limit - size;
    chunks.push(Buffer.from(value.subarray(0, room)));
    size += Math.min(value.length, room);
    if (value.length > room) {
      await reader.cancel();
      return { bytes: Buffer.concat(chunks), truncated: true };
    }
  }
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
