// Runs one program of a set-up, a check or a test suite, in a process group of its own, so that nothing of it outlives a timeout or a Ctrl-C.
import { spawn, spawnSync } from 'node:child_process'
import { constants } from 'node:os'

const keptLines = 20
const graceMs = 3_000

/** A step that did not work: what failed, the end of its output, and the next act. */
export class StepFailed extends Error {
  /** @param {string} message @param {{ tail?: readonly string[], hint?: string | undefined }} [more] */
  constructor(message, more = {}) {
    super(message)
    this.tail = more.tail ?? []
    this.hint = more.hint
  }
}

/** We were told to stop; what ran has been stopped. */
export class Interrupted extends Error {}

/**
 * @typedef {object} CommandOptions
 * @property {string} [cwd]
 * @property {Record<string, string | undefined>} [env] added to ours
 * @property {number} [timeoutMs]
 * @property {number} [keptBytes] how much of the end of its output is kept
 * @property {(pid: number) => void} [onStart]
 *
 * @typedef {object} CommandResult
 * @property {number} code
 * @property {string} output what it printed on both streams, the end of it
 * @property {boolean} timedOut
 * @property {number} seconds
 */

/** @param {string} output */
export function lastLines(output) {
  return output.trimEnd().split('\n').slice(-keptLines)
}

/** @param {import('node:child_process').ChildProcess} child @param {NodeJS.Signals} signal */
function signalGroup(child, signal) {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // The group is already gone, which is what was wanted.
  }
}

/**
 * Calls `signal` for the group when we are told to stop or its time is over. It listens before the program is started: a signal in between would end us and
 * leave the program behind.
 * @param {(signal: NodeJS.Signals) => void} signal @param {number | undefined} timeoutMs
 */
function watch(signal, timeoutMs) {
  const seen = { interrupted: false, timedOut: false }
  /** @type {NodeJS.Timeout[]} */
  const timers = []
  const stop = () => {
    signal('SIGTERM')
    timers.push(setTimeout(() => signal('SIGKILL'), graceMs))
  }
  const interrupt = () => {
    seen.interrupted = true
    stop()
  }
  const expire = () => {
    seen.timedOut = true
    stop()
  }
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt)
  if (timeoutMs !== undefined) timers.push(setTimeout(expire, timeoutMs))
  const end = () => {
    for (const timer of timers) clearTimeout(timer)
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
    return seen
  }
  return { end }
}

/** @param {readonly string[]} argv @param {CommandOptions} [options] @returns {Promise<CommandResult>} */
export function runCommand([file = '', ...args], options = {}) {
  const { keptBytes = 65_536 } = options
  const start = performance.now()
  return new Promise((resolve, reject) => {
    const watched = watch((signal) => signalGroup(child, signal), options.timeoutMs)
    const child = spawn(file, args, { cwd: options.cwd, env: { ...process.env, ...options.env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    let output = ''
    const keep = (/** @type {Buffer} */ chunk) => {
      output = (output + chunk.toString()).slice(-keptBytes)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    const settle = (/** @type {number} */ code) => {
      const { interrupted, timedOut } = watched.end()
      if (interrupted) reject(new Interrupted())
      else resolve({ code, output, timedOut, seconds: (performance.now() - start) / 1000 })
    }
    child.on('error', (error) => {
      output += error.message
      settle(127)
    })
    // Whatever it left in its group would keep the pipes open, and us waiting.
    child.on('exit', () => signalGroup(child, 'SIGKILL'))
    child.on('close', (code, signal) => settle(code ?? 128 + (signal === null ? 0 : constants.signals[signal])))
    if (child.pid !== undefined) options.onStart?.(child.pid)
  })
}

/**
 * As runCommand, and a program that does not end with 0 fails the step.
 * @param {readonly string[]} argv @param {CommandOptions & { hint?: string }} [options] @returns {Promise<CommandResult>}
 */
export async function mustRun(argv, options = {}) {
  const result = await runCommand(argv, options)
  if (result.code === 0) return result
  throw new StepFailed(`${argv.join(' ')} ended with ${result.code}`, { tail: lastLines(result.output), hint: options.hint })
}

/** @param {string} program */
export function isOnPath(program) {
  return spawnSync('/bin/sh', ['-c', 'command -v -- "$1" >/dev/null 2>&1', 'sh', program]).status === 0
}
