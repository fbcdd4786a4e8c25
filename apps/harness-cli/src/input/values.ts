import { readFile, stat } from 'node:fs/promises';
import { CliError, usageError } from '../cli/exit.js';

/** The largest file that an option reads. */
const MAX_BYTES = 8 * 1024 * 1024;

/** Parses a whole number; what is none stays text, which the input class then refuses. */
export const wholeNumber = (text: string): number | string => (/^-?\d{1,9}$/.test(text.trim()) ? Number(text) : text);

/** Gathers the values of an option that may be given several times. */
export const append = (value: string, before: unknown): string[] => [...(Array.isArray(before) ? (before as string[]) : []), value];

/** A text, or the content of the file that follows an `@`. */
export async function textOrFile(option: string, value: string): Promise<string> {
  if (!value.startsWith('@')) return value;
  const path = value.slice(1);
  try {
    const found = await stat(path);
    if (!found.isFile()) throw usageError(`${option} cannot read ${path}: it is ${found.isDirectory() ? 'a folder' : 'not a plain file'}`);
    if (found.size > MAX_BYTES) throw usageError(`${option} cannot read ${path}: it is larger than ${MAX_BYTES / 1024 / 1024} MB`);
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(path));
  } catch (error) {
    if (error instanceof CliError) throw error;
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
