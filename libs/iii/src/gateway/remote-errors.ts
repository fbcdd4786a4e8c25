import { errorMessage } from '#libs/contracts';
import { BusError } from '../bus.js';
import type { ErrorBody } from './messages.js';

/** The code of an error that a handler threw. */
const THROWN = 'invocation_failed';

/** An error as it goes to a worker. A code of ours is in the message, as with every worker of an engine. */
export const errorBody = (error: unknown): ErrorBody =>
  error instanceof BusError ? { code: error.code, message: error.detail } : { code: THROWN, message: errorMessage(error) };

/** The error that a worker answered, as a caller in this process gets it. */
export const remoteError = ({ code, message }: ErrorBody, functionId: string): Error =>
  code === THROWN ? new Error(message) : new BusError(code, message, functionId);
