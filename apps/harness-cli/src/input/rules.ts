import type { ValidationArguments } from 'class-validator';
import { closeTo, either } from './close.js';

/** A session id: whatever a caller chose, without spaces and control characters. */
export const SESSION_ID = /^[^\s\p{Cc}]{1,200}$/u;

const shown = (value: unknown): string => JSON.stringify(value) ?? String(value);

/** Message for a session id that cannot be one. */
export const sessionIdFault =
  (name: string) =>
  ({ value }: ValidationArguments): string =>
    `${name} must be a session id (1 to 200 characters, no spaces), got ${shown(value)}`;

/** Message for an option with a fixed set of values; names the one that was probably meant. */
export const oneOf =
  (option: string, values: readonly string[]) =>
  ({ value }: ValidationArguments): string => {
    const meant = closeTo(String(value), values);
    return `${option} must be ${either(values)}, got ${shown(value)}${meant.length > 0 ? ` (did you mean ${either(meant)}?)` : ''}`;
  };
