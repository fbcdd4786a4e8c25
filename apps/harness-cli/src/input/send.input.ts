import { IsIn, IsInt, IsOptional, Matches, Max, MaxLength, Min, MinLength, Validate } from 'class-validator';
import type { ExposeMode, Mode, SystemPromptStrategy, ThinkingLevel } from '#libs/contracts';
import { APPROVE, EXPOSE, MODES, STRATEGIES, THINKING } from './choices.js';
import { GlobsRule } from './globs.rule.js';
import { oneOf, SESSION_ID, sessionIdFault } from './rules.js';

/** What `send` was asked to do. */
export class SendInput {
  @IsOptional()
  @Matches(SESSION_ID, { message: sessionIdFault('--session') })
  session?: string;

  @IsOptional()
  @Matches(/^\S+$/, { message: '--model must be a model id without spaces' })
  @MaxLength(256, { message: '--model may have at most 256 characters' })
  model?: string;

  @IsOptional()
  @Matches(/^[A-Za-z0-9._-]{1,64}$/, { message: '--provider must be a provider id, as `harness-cli models` lists them' })
  provider?: string;

  @IsOptional()
  @Validate(GlobsRule, ['--allow'])
  allow?: string[];

  @IsOptional()
  @Validate(GlobsRule, ['--deny'])
  deny?: string[];

  @IsOptional()
  @IsIn(EXPOSE, { message: oneOf('--expose', EXPOSE) })
  expose?: ExposeMode;

  @IsOptional()
  @MinLength(1, { message: '--system must be a text, or @ and the path of a file' })
  system?: string;

  @IsOptional()
  @IsIn(STRATEGIES, { message: oneOf('--strategy', STRATEGIES) })
  strategy?: SystemPromptStrategy;

  @IsOptional()
  @IsIn(MODES, { message: oneOf('--mode', MODES) })
  mode?: Mode;

  @IsOptional()
  @IsInt({ message: '--max-turns must be a whole number from 1 to 100000' })
  @Min(1, { message: '--max-turns must be a whole number from 1 to 100000' })
  @Max(100_000, { message: '--max-turns must be a whole number from 1 to 100000' })
  maxTurns?: number;

  @IsOptional()
  @IsIn(THINKING, { message: oneOf('--thinking', THINKING) })
  thinking?: ThinkingLevel;

  @IsOptional()
  @MaxLength(500, { message: '--title may have at most 500 characters' })
  title?: string;

  @IsOptional()
  @IsIn(APPROVE, { message: oneOf('--approve', APPROVE) })
  approve?: (typeof APPROVE)[number];

  wait = true;
  json = false;
}
