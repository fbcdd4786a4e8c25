import { readFile } from 'node:fs/promises';
import { usageError } from '../cli/exit.js';

/** Parses a whole number; what is none stays text, which the input class then refuses. */
export const wholeNumber = (text: string): number | string => (/^-?\d{1,9}$/.test(text.trim()) ? Number(text) : text);

/** Gathers the values of an option that may be given several times. */
export const append = (value: string, before: unknown): string[] => [...(Array.isArray(before) ? (before as string[]) : []), value];

/** A text, or the content of the file that follows an `@`. */
export async function textOrFile(option: string, value: string): Promise<string> {
  if (!value.startsWith('@')) return value;
  const path = value.slice(1);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(path));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const why =
      code === 'ENOENT'
        ? 'there is no such file'
        : code === 'EISDIR'
          ? 'it is a folder'
          : code === 'EACCES'
            ? 'it may not be read'
            : error instanceof TypeError
              ? 'it is not UTF-8 text'
              : String(code);
    throw usageError(`${option} cannot read ${path}: ${why}`);
  }
}
