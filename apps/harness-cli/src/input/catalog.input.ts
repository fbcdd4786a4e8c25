import { IsOptional, Matches, MaxLength } from 'class-validator';

/** What `functions` was asked to show. */
export class FunctionsInput {
  @IsOptional()
  @Matches(/^[^\s\p{Cc}]{1,256}$/u, { message: '[id] must be a function id without spaces, such as coder::read-file' })
  id?: string;

  @IsOptional()
  @MaxLength(200, { message: '--search may have at most 200 characters' })
  search?: string;

  all = false;
  json = false;
}

/** What `models` was asked to list. */
export class ModelsInput {
  @IsOptional()
  @Matches(/^[A-Za-z0-9._-]{1,64}$/, { message: '--provider must be a provider id' })
  provider?: string;

  json = false;
}
