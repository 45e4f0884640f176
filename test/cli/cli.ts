import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Outcome, Usage } from '../../src/contract/run.js'

export const cliPath = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** Flags for a cell without walls: everything about the CLI holds there too, in milliseconds. */
export const fake = ['--driver', 'fake', '--min-tier', 'none'] as const

export interface CliResult {
  readonly code: number | null
  readonly signal: string | null
  readonly stdout: string
  readonly bytes: Buffer
  readonly stderr: string
  readonly ms: number
}

export interface CliOptions {
  readonly input?: string | Uint8Array
  readonly env?: Readonly<Record<string, string>>
}

/** The real program, its stdin an open pipe. */
export function startCli(args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [cliPath, ...args], { env: { ...process.env, ...env } })
}

export function collect(child: ChildProcessWithoutNullStreams): Promise<CliResult> {
  const startedAt = performance.now()
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
  child.stdin.on('error', () => undefined)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      const bytes = Buffer.concat(stdout)
      resolve({ code, signal, bytes, stdout: bytes.toString(), stderr: Buffer.concat(stderr).toString(), ms: performance.now() - startedAt })
    })
  })
}

export function cli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const child = startCli(args, options.env)
  const result = collect(child)
  child.stdin.end(options.input ?? '')
  return result
}

export function runFake(flags: readonly string[], command: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  return cli(['run', '--quiet', ...fake, ...flags, '--', ...command], options)
}

/** Resolves when the program has printed `text` on stdout. */
export function printed(child: ChildProcessWithoutNullStreams, text: string): Promise<void> {
  let seen = ''
  return new Promise((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      seen += chunk.toString()
      if (seen.includes(text)) resolve()
    })
    child.once('close', () => reject(new Error(`ended without printing ${text}: ${seen}`)))
  })
}

/** Pids of processes on this machine whose command line holds `marker`. */
export function processesWith(marker: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(marker)
      } catch {
        return false
      }
    })
    .map(Number)
}

/** What `run --json` prints. */
export interface RunReport {
  readonly id: string
  readonly outcome: Outcome
  readonly stdout: string
  readonly stdoutBase64?: string
  readonly stderr: string
  readonly truncated: boolean
  readonly usage: Usage
  readonly driver: string
  readonly tier: string
  readonly unenforced: readonly unknown[]
}

/** Text that one of our commands printed, as what it is documented to be; the tests hold it to that. */

export function parseAs<Report>(text: string): Report {
  return JSON.parse(text) as Report
}

/** How a child that was started ended, once it has. */
export async function exitCodeOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return child.exitCode
}

/** The same object with what differs from run to run named by its type instead. */
export function withoutChances(report: RunReport) {
  const steady = Object.fromEntries(
    Object.entries(report.usage as unknown as Record<string, number>).map(([name, value]) => [
      name,
      name === 'outputBytes' && !report.truncated ? value : typeof value,
    ]),
  )
  return { ...report, id: /^[a-z0-9]{20}$/.test(report.id) ? 'ID' : report.id, usage: steady }
}
