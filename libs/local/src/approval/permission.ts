import { Inject, Injectable } from '@nestjs/common';
import { compileGlobs } from '#libs/turn';
import { DATABASE, type SqliteConnection, SqliteWriter } from '../sqlite/index.js';
import { isReadOnly } from './read-only.js';
import { SessionSettings } from './session-settings.js';
import { APPROVAL_DEFAULTS, type ApprovalDefaultsSource } from './settings.js';

/** What the gate says of a call, and why unless it lets it pass. */
export type Verdict = { verdict: 'allow' } | { verdict: 'deny' | 'needs_approval'; reason: string };

/** Targets that nobody can approve: a call of these could approve calls. */
const CLOSED = /^(?:approval|configuration)::/;

/** Decides which calls a person is asked about. Everything is read from the store and the configuration, each time. */
@Injectable()
export class Permission {
  readonly settings: SessionSettings;
  private globs: { of: readonly string[]; match: (functionId: string) => boolean } = { of: [], match: () => false };

  constructor(
    @Inject(DATABASE) db: SqliteConnection,
    @Inject(SqliteWriter) writer: SqliteWriter,
    @Inject(APPROVAL_DEFAULTS) private readonly defaults: ApprovalDefaultsSource,
  ) {
    this.settings = new SessionSettings(db, writer);
  }

  evaluate(sessionId: string, functionId: string): Verdict {
    if (CLOSED.test(functionId)) return { verdict: 'deny', reason: `${functionId} is not for models, in any mode` };
    const { default_mode, auto_allow } = this.defaults.current();
    const { mode, always_allow, approved_always } = this.settings.inForce(sessionId, default_mode);
    if (mode === 'full' || approved_always.some((entry) => entry.function_id === functionId)) return { verdict: 'allow' };
    if (mode === 'auto') {
      const passes =
        isReadOnly(functionId) || always_allow.some((entry) => entry.function_id === functionId) || this.matches(auto_allow, functionId);
      return passes
        ? { verdict: 'allow' }
        : { verdict: 'needs_approval', reason: `${functionId} may change something, and mode auto asks about that` };
    }
    return { verdict: 'needs_approval', reason: `mode ${mode} asks about every call` };
  }

  private matches(globs: readonly string[], functionId: string): boolean {
    if (globs.length === 0) return false;
    if (this.globs.of !== globs) this.globs = { of: globs, match: compileGlobs(globs, 'auto_allow') };
    return this.globs.match(functionId);
  }
}
