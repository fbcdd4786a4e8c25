/** Where the file functions may go, and how much the local functions may return. Sizes are bytes. */
export interface ConfineValues {
  /** Folder that file functions and commands start in and cannot leave; null = the working directory, `off` = no file functions. */
  root: string | null;
  /** Lets `web::fetch` reach loopback and private addresses; link-local and cloud metadata addresses stay closed. */
  allow_private_addresses: boolean;
  /** Files that are listed but neither read nor written, as globs below the root. */
  non_accessible_globs: readonly string[];
  /** Folders that are closed whatever the root and the globs are: harness's own data. Not a setting. */
  closed_folders?: readonly string[];
  /** Keys of the configuration, hidden in what commands print. Not a setting. */
  secrets?: readonly string[];
  /** Content of one read, and text of one search. */
  max_output_bytes: number;
  /** Content of all entries of a batch read together. */
  max_batch_bytes: number;
  /** Largest file that is read whole or edited. */
  max_file_bytes: number;
  /** What is kept of each output stream of a command. */
  max_command_output_bytes: number;
  /** Largest response body that is kept. */
  max_response_bytes: number;
  /** Names of environment variables that commands get besides the usual ones. */
  command_env: readonly string[];
}

/** Reads the limits in force; asked anew for every call, so that a change applies at once. */
export interface ConfineSettings {
  current(): ConfineValues;
}
/** Injection token of the `ConfineSettings`. Without a provider, `workingDirectorySettings` is used. */
export const CONFINE_SETTINGS = Symbol('harness:confine-settings');

/** The limits that hold where nothing else is configured. */
export const confineDefaults: ConfineValues = {
  root: null,
  allow_private_addresses: false,
  non_accessible_globs: [
    '**/.env',
    '**/.env.*',
    '**/.envrc',
    '**/.netrc',
    '**/.npmrc',
    '**/.pgpass',
    '**/.git-credentials',
    '**/*.pem',
    '**/*.key',
    '**/*.p12',
    '**/id_rsa',
    '**/id_dsa',
    '**/id_ecdsa',
    '**/id_ed25519',
  ],
  max_output_bytes: 131_072,
  max_batch_bytes: 524_288,
  max_file_bytes: 10_485_760,
  max_command_output_bytes: 1_048_576,
  max_response_bytes: 5_242_880,
  command_env: [],
};

/** The default settings: the working directory of the process is the root. */
export const workingDirectorySettings: ConfineSettings = { current: () => confineDefaults };
