// Runs one step's program, keeping only the end of what it prints: that is what a failure shows.
import { spawn, spawnSync } from 'node:child_process'
import { constants } from 'node:os'

const keptLines = 20

/** A step that did not work: what failed, the end of its output, and the next act. */
export class StepFailed extends Error {
  /** @param {string} message @param {{ tail?: string[], hint?: string }} [more] */
  constructor(message, more = {}) {
    super(message)
    this.tail = more.tail ?? []
    this.hint = more.hint
  }
}

/** @param {string} text @returns {string[]} */
function lastLines(text) {
  return text.trimEnd().split('\n').slice(-keptLines)
}

/**
 * @typedef {{ cwd?: string, env?: Record<string, string | undefined>, timeoutMs?: number, onStart?: (pid: number) => void }} CommandOptions
 * @typedef {{ code: number, output: string, tail: string[] }} CommandResult
 */

/**
 * Runs a program in a process group of its own. SIGINT and SIGTERM to us reach the whole group, so nothing of a step outlives an interrupted set-up.
 * @param {readonly string[]} argv @param {CommandOptions} [options] @returns {Promise<CommandResult>}
 */
export function runCommand([file = '', ...args], options = {}) {
  return new Promise((resolve) => {
    const child = spawn(file, args, { cwd: options.cwd, env: { ...process.env, ...options.env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    let output = ''
    const keep = (/** @type {Buffer} */ chunk) => {
      output = (output + chunk.toString()).slice(-65_536)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    const stop = (/** @type {NodeJS.Signals} */ signal) => {
      if (child.pid === undefined) return
      try {
        process.kill(-child.pid, signal)
      } catch {
        // The group is already gone, which is what was wanted.
      }
    }
    const interrupted = (/** @type {NodeJS.Signals} */ signal) => {
      stop('SIGTERM')
      process.exit(128 + constants.signals[signal])
    }
    const timer = options.timeoutMs === undefined ? undefined : setTimeout(() => stop('SIGKILL'), options.timeoutMs)
    process.on('SIGINT', interrupted).on('SIGTERM', interrupted)
    const settle = (/** @type {number} */ code) => {
      clearTimeout(timer)
      process.off('SIGINT', interrupted).off('SIGTERM', interrupted)
      resolve({ code, output, tail: lastLines(output) })
    }
    child.on('error', (error) => {
      output += error.message
      settle(127)
    })
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
  throw new StepFailed(`${argv.join(' ')} ended with ${result.code}`, { tail: result.tail, ...(options.hint === undefined ? {} : { hint: options.hint }) })
}

/** @param {string} program */
export function isOnPath(program) {
  return spawnSync('/bin/sh', ['-c', 'command -v -- "$1" >/dev/null 2>&1', 'sh', program]).status === 0
}
