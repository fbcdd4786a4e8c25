import type { CommandMetadata, HelpOptions, OptionMetadata } from 'nest-commander';
import { CommandMeta, HelpMeta, OptionMeta } from 'nest-commander/src/constants.js';

// nest-commander reads this metadata. Its own decorators write the same, but loading them loads Nest, which would make help and
// completion three times as slow.
export { CommandRunner } from 'nest-commander/src/command-runner.interface.js';

/** Makes a class a command. */
export const Command =
  (options: CommandMetadata): ClassDecorator =>
  (type) =>
    Reflect.defineMetadata(CommandMeta, options, type);

const onMethod =
  (key: string, value: unknown): MethodDecorator =>
  (_type, _name, descriptor) =>
    Reflect.defineMetadata(key, value, descriptor.value as object);

/** Makes a method the parser of an option: it gets the text, and for a repeated option what it gave before. */
export const Option = (options: OptionMetadata): MethodDecorator => onMethod(OptionMeta, options);

/** Makes a method give a text that is added to the help. */
export const Help = (where: HelpOptions): MethodDecorator => onMethod(HelpMeta, where);
