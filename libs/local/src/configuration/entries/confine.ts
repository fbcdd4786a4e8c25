import { type ConfineValues, confineDefaults } from '../../confine/settings.js';
import { checkOf, field, flag, listOf, nullable, text, whole } from '../rules.js';
import { pathGlob } from '../syntax.js';

const bytes = whole(1, 1_073_741_824);

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const variableName = checkOf({ type: 'string', pattern: VARIABLE.source }, (value) =>
  typeof value === 'string' && VARIABLE.test(value) ? null : 'must be the name of an environment variable',
);

/** The fields of `confine.yaml`. */
export class ConfineFields implements ConfineValues {
  @field(
    nullable(text('a folder or `off`')),
    'Folder of the file functions and of commands; null = `default_filesystem_root`, else the working directory; `off` = no file functions.',
  )
  root = confineDefaults.root;

  @field(flag, 'Lets `web::fetch` reach loopback and private addresses; link-local and cloud metadata addresses stay closed.')
  allow_private_addresses = confineDefaults.allow_private_addresses;

  @field(listOf('globs of paths', pathGlob), 'Files that are listed but neither read nor written, as globs below the root.')
  non_accessible_globs = confineDefaults.non_accessible_globs;

  @field(bytes, 'Content of one read, and text of one search, in bytes.')
  max_output_bytes = confineDefaults.max_output_bytes;

  @field(bytes, 'Content of all entries of a batch together, in bytes.')
  max_batch_bytes = confineDefaults.max_batch_bytes;

  @field(bytes, 'Largest file that is read whole or edited, in bytes.')
  max_file_bytes = confineDefaults.max_file_bytes;

  @field(bytes, 'What is kept of each output stream of a command, in bytes.')
  max_command_output_bytes = confineDefaults.max_command_output_bytes;

  @field(bytes, 'Largest response body that is kept, in bytes.')
  max_response_bytes = confineDefaults.max_response_bytes;

  @field(listOf('names of environment variables', variableName), 'Environment variables that commands get besides the usual ones.')
  command_env = confineDefaults.command_env;
}
