import type { AgentMessage, ContentBlock, ImageBlock } from '#libs/contracts';

const MIMES: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** Sizes are characters of base64, which is what providers count. */
const MAX_IMAGE = 5 * 1_048_576;
const MAX_ALL_IMAGES = 16 * 1_048_576;
const MAX_IMAGES = 20;

const note = (block: ImageBlock, why: string): ContentBlock => ({
  type: 'text',
  text: `[An image (${block.mime}) was left out: ${why}.]`,
});

/** Content with notes in the place of images that no provider takes, and without references to files. Unchanged content comes back as it is. */
export function normalised(content: ContentBlock[]): ContentBlock[] {
  if (content.every((block) => block.type !== 'function_result' && refusal(block) === null && !isFile(block))) return content;
  return content.flatMap((block): ContentBlock[] => {
    if (isFile(block)) return [];
    if (block.type === 'function_result') return [{ ...block, content: normalised(block.content) }];
    const why = refusal(block);
    return [block.type === 'image' && why !== null ? note(block, why) : block];
  });
}

/** A reference to a stored file; it has nothing that a model could see. */
const isFile = (block: ContentBlock): boolean => (block as { type: string }).type === 'file';

function refusal(block: ContentBlock): string | null {
  if (block.type !== 'image') return null;
  if (!MIMES.includes(block.mime.toLowerCase())) return `its type is not one of ${MIMES.join(', ')}`;
  if (block.data === '') return 'it is empty';
  return block.data.length > MAX_IMAGE ? `it is larger than ${MAX_IMAGE / 1_048_576} MB when encoded` : null;
}

/** The sizes of the images of a message, in order. */
export const imageSizes = ({ content }: AgentMessage): number[] =>
  content.flatMap((block) =>
    block.type === 'image' ? [block.data.length] : block.type === 'function_result' ? block.content.flatMap(sizeOfImage) : [],
  );
const sizeOfImage = (block: ContentBlock): number[] => (block.type === 'image' ? [block.data.length] : []);

/**
 * How many of the oldest images have to go, given the sizes of all and how many there is room for. They go in big steps, so that
 * the same ones are gone in the next request too.
 */
export function surplusImages(sizes: readonly number[], room: number): number {
  const most = Math.min(MAX_IMAGES, Math.max(1, room));
  let surplus = roundedUp(sizes.length - most, Math.max(1, most >> 1));
  const all = sizes.reduce((sum, size) => sum + size, 0);
  const tooMuch = roundedUp(all - MAX_ALL_IMAGES, MAX_ALL_IMAGES / 2);
  let gone = 0;
  for (let index = 0; index < sizes.length && gone < tooMuch; index += 1) {
    gone += sizes[index] ?? 0;
    surplus = Math.max(surplus, index + 1);
  }
  return Math.min(surplus, Math.max(0, sizes.length - 1));
}

const roundedUp = (excess: number, step: number): number => (excess <= 0 ? 0 : Math.ceil(excess / step) * step);

/** Messages with notes in the place of their first `count` images. */
export function withoutOldImages(messages: readonly AgentMessage[], count: number): AgentMessage[] {
  let left = count;
  return messages.map((message) => {
    const images = imageSizes(message).length;
    if (left === 0 || images === 0) return message;
    const content = withoutImages(message.content, left, 'newer images take its place');
    left = Math.max(0, left - images);
    return { ...message, content };
  });
}

/** Content with notes in the place of its first `count` images. */
export function withoutImages(content: readonly ContentBlock[], count: number, why: string): ContentBlock[] {
  let left = count;
  return content.map((block): ContentBlock => {
    if (block.type === 'function_result') {
      const inner = withoutImages(block.content, left, why);
      left = Math.max(0, left - block.content.filter((one) => one.type === 'image').length);
      return { ...block, content: inner };
    }
    if (block.type !== 'image' || left === 0) return block;
    left -= 1;
    return note(block, why);
  });
}
