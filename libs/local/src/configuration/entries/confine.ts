import { type ConfineValues, confineDefaults } from '../../confine/settings.js';
import { type Check, field, flag, listOf, nullable, text, whole } from '../rules.js';
import { pathGlob } from '../syntax.js';

const bytes = whole(1, 1_073_741_824);

const variableName: Check = (value) =>
  typeof value === 'string' && /^[A-Za-z_][A-Za-z0-9_]*$/.test(value) ? null : 'must be the name of an environment variable';

/** The fields of `confine.yaml`. */
export class ConfineFields implements ConfineValues {
  @field(nullable(text('a folder or `off`')))
  root = confineDefaults.root;

  @field(flag)
  allow_private_addresses = confineDefaults.allow_private_addresses;

  @field(listOf('globs of paths', pathGlob))
  non_accessible_globs = confineDefaults.non_accessible_globs;

  @field(bytes)
  max_output_bytes = confineDefaults.max_output_bytes;

  @field(bytes)
  max_batch_bytes = confineDefaults.max_batch_bytes;

  @field(bytes)
  max_file_bytes = confineDefaults.max_file_bytes;

  @field(bytes)
  max_command_output_bytes = confineDefaults.max_command_output_bytes;

  @field(bytes)
  max_response_bytes = confineDefaults.max_response_bytes;

  @field(listOf('names of environment variables', variableName))
  command_env = confineDefaults.command_env;
}
