import { IsOptional, Matches, MaxLength } from 'class-validator';
import { SESSION_ID, sessionIdFault } from './rules.js';
import { SessionInput } from './session.input.js';

/** What `approvals` was asked to list. */
export class ApprovalsInput {
  @IsOptional()
  @Matches(SESSION_ID, { message: sessionIdFault('--session') })
  session?: string;

  json = false;
}

/** A decision about a call. */
export class DecisionInput extends SessionInput {
  @Matches(/^[^\s\p{Cc}]{1,200}$/u, { message: '<call> must be the id of a call, as `harness-cli approvals` lists them' })
  call!: string;

  @IsOptional()
  @MaxLength(2000, { message: '--reason may have at most 2000 characters' })
  reason?: string;

  always = false;
}
