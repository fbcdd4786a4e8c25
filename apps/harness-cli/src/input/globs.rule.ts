import { type ValidationArguments, ValidatorConstraint, type ValidatorConstraintInterface } from 'class-validator';
import { globFault } from './globs.js';

/** Checks a list of policy globs; its one constraint is the name of the option. */
@ValidatorConstraint({ name: 'globs' })
export class GlobsRule implements ValidatorConstraintInterface {
  validate(globs: unknown): boolean {
    return Array.isArray(globs) && globs.length > 0 && globs.every((glob) => typeof glob === 'string' && globFault(glob) === null);
  }

  defaultMessage({ value, constraints }: ValidationArguments): string {
    const option = String(constraints[0]);
    const globs: unknown[] = Array.isArray(value) ? value : [];
    const bad = globs.find((glob): glob is string => typeof glob === 'string' && globFault(glob) !== null);
    if (bad === undefined) return `${option} needs a glob over function ids, such as 'coder::*'`;
    return `${option} ${JSON.stringify(bad)} is refused: ${globFault(bad) ?? ''}`;
  }
}
