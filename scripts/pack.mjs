#!/usr/bin/env node
// Fills dist with everything the published package carries, before `npm pack` and `npm publish`: JavaScript, types, and the native programs of both
// architectures, so that installing it needs no compiler and no install script.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Interrupted, mustRun, StepFailed } from './command.mjs'
import { fetchLibseccomp } from './packing/libseccomp.mjs'
import { setUp } from './setup/steps.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const architectures = /** @type {const} */ (['x64', 'arm64'])

/** @param {string[]} argv */
const node = (...argv) => mustRun([process.execPath, ...argv], { cwd: root })

/** @param {(typeof architectures)[number]} arch */
async function buildNative(arch) {
  const beside = arch === process.arch ? [] : ['--beside', await fetchLibseccomp({ root, arch })]
  await node('scripts/build-native.mjs', '--arch', arch, ...beside)
}

try {
  // In an untouched clone there is nothing to build with yet.
  const ready = await setUp({ everything: true })
  if (ready !== 0) process.exit(ready)
  await node('scripts/build.mjs')
  await Promise.all([mustRun([join(root, 'node_modules/.bin/tsc'), '-p', 'tsconfig.build.json'], { cwd: root }), ...architectures.map(buildNative)])
} catch (error) {
  if (error instanceof StepFailed)
    process.stderr.write(`${error.tail.join('\n')}\npack: ${error.message}\n${error.hint === undefined ? '' : `  try: ${error.hint}\n`}`)
  else if (!(error instanceof Interrupted)) throw error
  process.exitCode = 1
}
