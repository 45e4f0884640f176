// The steps of a set-up. Each finds out by itself whether there is anything to do, so a start after a sudden kill simply goes on where it stopped; the stamp
// that makes later starts fast is written last.
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Interrupted, isOnPath, mustRun, StepFailed } from '../command.mjs'
import { isAlive, ownerOf, takeLock } from './lock.mjs'
import { isNativeCurrent } from './native.mjs'
import { hasDevelopmentTools, isInstalled } from './node-packages.mjs'
import { installCommand, installPackages, mayInstall, missingNeeds, packageNames } from './system-packages.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const place = join(root, 'build/setup')
const childRecord = join(place, 'child.json')

/** @typedef {import('./system-packages.mjs').Need} Need */

/** @type {readonly Need[]} */
const needsOfStarting = ['cell']
/** @type {readonly Need[]} */
const needsOfRunning = [...needsOfStarting, 'compiler', 'seccomp']
/** @type {readonly Need[]} */
const needsOfTesting = [...needsOfRunning, 'cross-compiler', 'emulator', 'other-user', 'git', 'python', 'containers']

/** Asked about when the lists of packages are there. @type {readonly Need[]} */
const wishesOfTesting = ['gvisor']

/** @param {string} line */
function say(line) {
  process.stderr.write(`glovebox set-up: ${line}\n`)
}

/** A program of a step is written down while it runs, so that a set-up after a sudden kill does not start beside it. @param {number} pid */
function recordChild(pid) {
  writeFileSync(childRecord, JSON.stringify(ownerOf(pid)))
}

async function awaitOrphan() {
  if (!existsSync(childRecord)) return
  /** @type {import('./lock.mjs').Owner | undefined} */
  let orphan
  try {
    orphan = JSON.parse(readFileSync(childRecord, 'utf8'))
  } catch {
    // Cut off while it was written: that program had only just started, and its own locks hold.
  }
  if (orphan !== undefined && isAlive(orphan)) say(`a step of an interrupted set-up still runs (process ${orphan.pid}); waiting for it`)
  while (orphan !== undefined && isAlive(orphan)) await sleep(100)
  rmSync(childRecord, { force: true })
}

/** @param {readonly string[]} argv @param {{ cwd?: string, hint?: string }} [options] */
function runStep(argv, options = {}) {
  return mustRun(argv, { cwd: root, ...options, onStart: recordChild })
}

/** @param {string} title @param {() => Promise<unknown>} work */
async function step(title, work) {
  const start = performance.now()
  say(`${title} …`)
  await work()
  say(`${title}: done in ${((performance.now() - start) / 1000).toFixed(1)} s`)
}

/** Returns what could not be installed. @param {readonly Need[]} needs @returns {Promise<readonly Need[]>} */
async function systemPackages(needs) {
  const missing = missingNeeds(needs)
  if (missing.length === 0) return []
  if (mayInstall()) {
    await step(`system packages: ${packageNames(missing)}`, () => installPackages(missing, { onStart: recordChild }))
    return missingNeeds(missing)
  }
  say(`these system packages are missing, and this account may not install them: ${packageNames(missing)}`)
  say(`run this once: ${installCommand(missing) ?? 'install them with the package manager of this system'}`)
  return missing
}

const npmHint = 'npm ping (is the registry reachable?), then run this again'
// One more try is enough for a hiccup; npm's own two take over a minute before they say that there is no network.
const npmInstall = ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=1']

/** @param {readonly string[]} flags @param {{ cwd?: string }} [options] */
async function installNodePackages(flags, options = {}) {
  if (!isOnPath('npm'))
    throw new StepFailed('npm is not on PATH', {
      hint: 'install npm (it comes with Node.js from nodejs.org; on Debian: apt-get install npm), then run this again',
    })
  await runStep([...npmInstall, ...flags], { ...options, hint: npmHint })
}

/** @param {'all' | 'running'} extent */
async function nodePackages(extent) {
  if (isInstalled(root, extent)) return
  // npm ci replaces node_modules as a whole: a developer's tools must be in the new one too.
  const all = extent === 'all' || hasDevelopmentTools(root)
  await step(`Node packages (${all ? 'all' : 'only what running needs'})`, () => installNodePackages(all ? [] : ['--omit=dev']))
}

/** esbuild alone, in a folder of its own, so that a first start does not download the test tools. */
async function toolchain() {
  const folder = join(root, 'build/toolchain')
  if (existsSync(join(root, 'node_modules/esbuild/package.json'))) return
  mkdirSync(folder, { recursive: true })
  for (const name of ['package.json', 'package-lock.json']) copyFileSync(join(root, 'scripts/toolchain', name), join(folder, name))
  if (isInstalled(folder, 'all')) return
  await step('build tools', () => installNodePackages([], { cwd: folder }))
}

/** @param {{ everything: boolean }} options @returns {Promise<number>} */
async function allSteps({ everything }) {
  const needs = everything ? needsOfTesting : isNativeCurrent(root) ? needsOfStarting : needsOfRunning
  const missing = [...(await systemPackages(needs)), ...(await systemPackages(everything ? wishesOfTesting : []))]
  await nodePackages(everything ? 'all' : 'running')
  await toolchain()
  await step('JavaScript', () => runStep([process.execPath, 'scripts/build.mjs']))
  if (missing.includes('compiler') || missing.includes('seccomp')) {
    say('stopped before the native programs, without which nothing can be run; run the command above, then this again')
    return 3
  }
  if (process.platform === 'linux' && !isNativeCurrent(root)) await step('native programs', () => runStep([process.execPath, 'scripts/build-native.mjs']))
  return missing.length === 0 ? 0 : 4
}

/** The stamp carries the time at which the set-up began: what is edited meanwhile is newer. @param {Date} began */
function writeStamp(began) {
  const draft = join(place, `stamp-${process.pid}`)
  writeFileSync(draft, '')
  utimesSync(draft, began, began)
  renameSync(draft, join(place, 'stamp'))
}

/** @param {unknown} error */
function sayFailure(error) {
  const failure = error instanceof Error ? error : new Error(String(error))
  if (failure instanceof StepFailed) for (const line of failure.tail) process.stderr.write(`  | ${line}\n`)
  say(`failed: ${failure.message}`)
  const code = /** @type {NodeJS.ErrnoException} */ (failure).code
  const denied = code === 'EACCES' || code === 'EPERM' || code === 'EROFS'
  const hint = denied
    ? 'run it once as the owner of this folder, or clone it into a folder of your own'
    : failure instanceof StepFailed
      ? failure.hint
      : undefined
  say(`to go on: ${hint ?? 'mend what the lines above say and run this again; it goes on where it stopped'}`)
}

/**
 * @param {{ everything: boolean }} options
 * @returns {Promise<number>} the exit code: 0 ready, 3 native programs missing, 130 interrupted, 1 failed
 */
export async function setUp(options) {
  const start = performance.now()
  try {
    const release = await takeLock(join(place, 'lock'), {
      onWait: (owner) => say(`another set-up of this clone runs (process ${owner.pid}); waiting for it`),
    })
    try {
      await awaitOrphan()
      const began = new Date()
      const code = await allSteps(options)
      if (code === 3) return 3
      // Without bubblewrap the CLI runs and explains itself; no stamp, so that the next start looks again.
      if (code === 0) writeStamp(began)
      say(`ready after ${((performance.now() - start) / 1000).toFixed(1)} s`)
      return 0
    } finally {
      rmSync(childRecord, { force: true })
      release()
    }
  } catch (error) {
    if (error instanceof Interrupted) return 130
    sayFailure(error)
    return 1
  }
}
