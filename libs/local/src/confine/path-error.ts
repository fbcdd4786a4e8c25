/** Why a path was refused. */
export type PathReason = 'off' | 'invalid' | 'outside' | 'missing' | 'denied' | 'type';

/** A path that may not, or cannot, be used. Each worker turns the reason into a code of its own. */
export class PathError extends Error {
  override readonly name = 'PathError';
  constructor(
    readonly reason: PathReason,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

/** The `code` of a system error, e.g. `ENOENT`. */
export const errnoOf = (error: unknown): string | undefined => {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return typeof code === 'string' ? code : undefined;
};

/** Says a system error about `path` as a `PathError`; gives back any other error as it is. */
export function pathError(error: unknown, path: string): unknown {
  switch (errnoOf(error)) {
    case 'ENOENT':
    case 'ENOTDIR':
      return new PathError('missing', `${path} does not exist`, { cause: error });
    case 'ELOOP':
      return new PathError('outside', `${path} is or became a symbolic link`, { cause: error });
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new PathError('denied', `${path} may not be accessed (${errnoOf(error)})`, { cause: error });
    case 'EISDIR':
    case 'ENXIO':
      return new PathError('type', `${path} is not a regular file`, { cause: error });
    case 'ENAMETOOLONG':
    case 'EINVAL':
      return new PathError('invalid', `${path.slice(0, 200)} is not a usable path (${errnoOf(error)})`, { cause: error });
    default:
      return error;
  }
}
