/** How calls of a session are treated: each is asked about, or those that change something, or none. */
export type PermissionMode = 'manual' | 'auto' | 'full';
export const PERMISSION_MODES: readonly PermissionMode[] = ['manual', 'auto', 'full'];

/** What holds for sessions that have no settings of their own (the configuration entry `approval`). */
export interface ApprovalDefaults {
  default_mode: PermissionMode;
  /** Globs of functions that `auto` lets pass besides those that only read. */
  auto_allow: readonly string[];
}

/** Reads the defaults in force; asked anew for every call, so that a change applies at once. */
export interface ApprovalDefaultsSource {
  current(): ApprovalDefaults;
}
/** Injection token of the `ApprovalDefaultsSource`. */
export const APPROVAL_DEFAULTS = Symbol('harness:approval-defaults');

/** Nobody may sit at a terminal, and the policy of a send denies by default: so nothing is asked unless somebody says so. */
export const approvalDefaults: ApprovalDefaults = { default_mode: 'full', auto_allow: [] };
