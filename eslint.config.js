import tseslint from 'typescript-eslint';

const maxLines = (max) => ['error', { max, skipBlankLines: true, skipComments: true }];

/** Only what Biome cannot check: rules that need types, and the length of files. */
export default tseslint.config(
  { ignores: ['dist/**', 'coverage/**', 'node_modules/**'] },
  {
    files: ['{apps,libs,test,bench}/**/*.ts'],
    languageOptions: {
      parser: tseslint.parser,
      parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname },
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    plugins: { '@typescript-eslint': tseslint.plugin },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-explicit-any': 'error',
      'max-lines': maxLines(320),
    },
  },
  { files: ['**/*.spec.ts', 'test/**/*.ts', 'bench/**/*.ts'], rules: { 'max-lines': maxLines(600) } },
);
