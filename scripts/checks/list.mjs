// The checks, in the order in which their lines are printed.

/** @typedef {{ name: string, argv: readonly string[] }} Check */

const node = process.execPath

/** @type {readonly Check[]} */
export const checks = [
  { name: 'format', argv: ['node_modules/.bin/biome', 'format', '.'] },
  { name: 'lint', argv: ['node_modules/.bin/eslint', '--max-warnings=0', '.'] },
  { name: 'types of src', argv: ['node_modules/.bin/tsc', '--noEmit', '-p', '.'] },
  { name: 'types of test', argv: ['node_modules/.bin/tsc', '-p', 'test'] },
  { name: 'types of scripts', argv: ['node_modules/.bin/tsc', '-p', 'scripts'] },
  { name: 'layers', argv: [node, 'scripts/checks/layers.mjs'] },
  { name: 'sizes', argv: [node, 'scripts/checks/sizes.mjs'] },
  { name: 'unused', argv: ['node_modules/.bin/knip'] },
  { name: 'docs', argv: [node, 'scripts/checks/docs.mjs'] },
  { name: 'drivers', argv: [node, 'scripts/checks/drivers.mjs'] },
]
