/** Folders of tools and builds that searches and trees leave out unless they are asked not to. */
export const DEFAULT_EXCLUDES: readonly string[] = [
  '.git',
  '.hg',
  '.svn',
  '.jj',
  'node_modules',
  'bower_components',
  'target',
  'dist',
  'build',
  '.next',
  '.nuxt',
  '.turbo',
  '.cache',
  'coverage',
  '__pycache__',
  '.venv',
  'venv',
  '.tox',
  '.mypy_cache',
  '.pytest_cache',
  '.ruff_cache',
  '.gradle',
  '.terraform',
];

const names = new Set(DEFAULT_EXCLUDES);
/** True for the name of a folder in `DEFAULT_EXCLUDES`. */
export const isDefaultExclude = (name: string): boolean => names.has(name);
