export interface TextPart {
  type: 'text';
  text: string;
}
/** `data` is base64. */
export interface ImagePart {
  type: 'image';
  mime: string;
  data: string;
}

/** What a vendor and a model take. Sizes are characters of base64, which is what vendors count. */
export interface ImageLimits {
  /** False when the model cannot see. */
  allowed: boolean;
  mimes: readonly string[];
  maxEach: number;
  maxTotal: number;
}

interface Holder {
  role: 'user' | 'assistant';
  results?: { content: (TextPart | ImagePart)[] }[];
  content?: (TextPart | ImagePart)[];
}

/** Replaces images that the vendor would refuse by a note, in place. When all together are too many, the oldest go. */
export function boundImages(turns: readonly Holder[], limits: ImageLimits): void {
  let total = 0;
  for (const turn of [...turns].reverse()) {
    const lists = [...(turn.results ?? []).map((result) => result.content), turn.content ?? []];
    for (const list of lists.reverse()) {
      for (let at = list.length - 1; at >= 0; at -= 1) {
        const part = list[at];
        if (part?.type !== 'image') continue;
        const refused = refusal(part, limits, total);
        if (refused === undefined) total += part.data.length;
        else list[at] = { type: 'text', text: `[An image (${part.mime}) was left out: ${refused}.]` };
      }
    }
  }
}

function refusal(image: ImagePart, limits: ImageLimits, total: number): string | undefined {
  if (!limits.allowed) return 'this model does not take images';
  if (!limits.mimes.includes(image.mime)) return `its type is not one of ${limits.mimes.join(', ')}`;
  if (image.data === '') return 'it is empty';
  if (image.data.length > limits.maxEach) return `it is larger than ${megabytes(limits.maxEach)}`;
  if (total + image.data.length > limits.maxTotal) return `newer images fill the ${megabytes(limits.maxTotal)} that one request may hold`;
  return undefined;
}

const megabytes = (characters: number): string => `${(characters / 1_048_576).toFixed(1)} MB when encoded`;
