import { type ApprovalDefaults, approvalDefaults, PERMISSION_MODES } from '../../approval/settings.js';
import { field, listOf, oneOf } from '../rules.js';
import { functionGlob } from '../syntax.js';

/** The fields of `approval.yaml`. */
export class ApprovalFields implements ApprovalDefaults {
  @field(
    oneOf(...PERMISSION_MODES),
    'Mode of sessions that have none of their own: `manual` asks about every call, `auto` about those that may change something, `full` about none.',
  )
  default_mode = approvalDefaults.default_mode;

  @field(listOf('globs of function ids', functionGlob), 'Globs of functions that mode `auto` lets pass besides those that only read.')
  auto_allow = approvalDefaults.auto_allow;
}
