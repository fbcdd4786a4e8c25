import { MessagePattern } from '@nestjs/microservices';
import type { JsonValue, Schema } from '#libs/contracts';

/** What `@IiiFunction` says of a handler. */
export interface IiiFunctionOptions {
  /** Function id, e.g. `state::get`. */
  id: string;
  description: string;
  /** JSON Schema of the payload; requests are checked against it before the handler runs. */
  request: Schema;
  /** What requests are checked against in place of `request`, where the handler checks the rest of them itself. */
  checked?: Schema;
  response?: Schema;
  metadata?: { readonly [key: string]: JsonValue };
  /** Makes the error for a payload that fails its schema; by default `<prefix>/invalid_request: <detail>`. */
  invalid?: (detail: string) => Error;
}

/** Key of the options in a Nest handler's extras. */
export const III_EXTRAS = 'iii';

/**
 * Makes a controller's method an iii function. It gets the payload by `@Payload()` and the `InvocationContext` by
 * `@Ctx()`; what it returns is the result, what it throws reaches the caller as the error.
 */
export const IiiFunction = (options: IiiFunctionOptions): MethodDecorator => MessagePattern(options.id, { [III_EXTRAS]: options });
