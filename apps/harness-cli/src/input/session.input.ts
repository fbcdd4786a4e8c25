import { IsIn, IsInt, IsOptional, Matches, Max, MaxLength, Min } from 'class-validator';
import type { SessionStatus } from '#libs/contracts';
import { SESSION_STATUS } from './choices.js';
import { oneOf, SESSION_ID, sessionIdFault } from './rules.js';

/** A command about one session. */
export class SessionInput {
  @Matches(SESSION_ID, { message: sessionIdFault('<session>') })
  session!: string;

  json = false;
}

/** What `status` was asked to show. */
export class StatusInput extends SessionInput {
  watch = false;
}

/** What `watch` was asked to follow. */
export class WatchInput extends SessionInput {
  @IsOptional()
  @Matches(SESSION_ID, { message: '--from must be the id of an entry, or start' })
  from?: string;
}

/** What `traces` was asked to show. */
export class TracesInput extends SessionInput {
  @IsOptional()
  @Matches(SESSION_ID, { message: '--turn must be the id of a turn' })
  turn?: string;
}

/** What `show` was asked to show. */
export class ShowInput extends SessionInput {
  tree = false;

  @IsOptional()
  @IsInt({ message: '--limit must be a whole number from 1 to 1000000' })
  @Min(1, { message: '--limit must be a whole number from 1 to 1000000' })
  @Max(1_000_000, { message: '--limit must be a whole number from 1 to 1000000' })
  limit?: number;
}

/** What `sessions` was asked to list. */
export class SessionsInput {
  @IsOptional()
  @IsIn(SESSION_STATUS, { message: oneOf('--status', SESSION_STATUS) })
  status?: SessionStatus;

  @IsInt({ message: '--limit must be a whole number from 1 to 10000' })
  @Min(1, { message: '--limit must be a whole number from 1 to 10000' })
  @Max(10_000, { message: '--limit must be a whole number from 1 to 10000' })
  limit = 20;

  @IsOptional()
  @MaxLength(200, { message: '--search may have at most 200 characters' })
  search?: string;

  json = false;
}
