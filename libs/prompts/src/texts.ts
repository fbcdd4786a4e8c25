import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The names of the prompt texts; each is a file `libs/prompts/text/<name>.md`. */
export type TextName =
  | 'identity'
  | 'calling-agent-trigger'
  | 'calling-native'
  | 'mode-agent'
  | 'mode-ask'
  | 'mode-plan'
  | 'output-json'
  | 'compaction'
  | 'summary-section';

const TEXT_FOLDER = join('libs', 'prompts', 'text');

/** The folder of the texts at or above `start`: the same one for the sources, the build and an installed package. */
export function findTextFolder(start: string): string {
  for (let folder = start; ; folder = dirname(folder)) {
    const candidate = join(folder, TEXT_FOLDER);
    if (existsSync(candidate)) return candidate;
    if (folder === dirname(folder)) throw new Error(`the prompt texts are missing: no folder ${TEXT_FOLDER} at or above ${start}`);
  }
}

let textFolder: string | undefined;
const texts = new Map<TextName, string>();

/** A prompt text without blank lines at its ends. Read on first use, then kept. */
export function text(name: TextName): string {
  const known = texts.get(name);
  if (known !== undefined) return known;
  textFolder ??= findTextFolder(dirname(fileURLToPath(import.meta.url)));
  const read = readFileSync(join(textFolder, `${name}.md`), 'utf8')
    .replaceAll('\r\n', '\n')
    .trim();
  texts.set(name, read);
  return read;
}
