import { defineConfig } from 'eslint/config'
import tseslint from 'typescript-eslint'

export default defineConfig(
  { ignores: ['dist/', 'build/', 'coverage/', 'node_modules/'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' }, rules: { eqeqeq: 'error', 'no-restricted-globals': ['error', '__dirname', 'require'] } },
  { files: ['**/*.js', '**/*.mjs'], extends: [tseslint.configs.strict] },
  // Scripts that Node runs from memory, which have nothing but `require`.
  { files: ['runtimes/node/*.cjs'], rules: { 'no-restricted-globals': 'off' } },
  {
    // vitest's matchers are typed `any`; what a test must not do is forget a promise.
    files: ['test/**/*.ts'],
    extends: [tseslint.configs.strict],
    languageOptions: { parserOptions: { project: ['test/tsconfig.json'], tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { varsIgnorePattern: '^_', argsIgnorePattern: '^_' }],
    },
  },
  {
    files: ['**/*.ts'],
    ignores: ['test/**'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { project: ['tsconfig.json', 'test/tsconfig.json'], tsconfigRootDir: import.meta.dirname } },
    rules: {
      // A number in a message is read as it stands; objects and unknowns are still refused.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-unused-vars': ['error', { varsIgnorePattern: '^_', argsIgnorePattern: '^_' }],
      // The reason of an AbortSignal is whatever its owner chose, and is passed on as it is.
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allowThrowingAny: true, allowThrowingUnknown: true }],
      '@typescript-eslint/only-throw-error': ['error', { allowThrowingAny: true, allowThrowingUnknown: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
    },
  },
  {
    files: ['src/**/*.ts', 'web/**/*.ts', 'web/**/*.tsx'],
    rules: { 'no-restricted-syntax': ['error', { selector: 'ExportDefaultDeclaration', message: 'export by name; a default export has none' }] },
  },
)
