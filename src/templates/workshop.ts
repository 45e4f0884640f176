/** Programs of a template that is being built run in a cell, like everybody's. */
import { availableParallelism } from 'node:os'
import type { TemplateRoot } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { Platform } from '../contract/platform.js'
import type { Outcome } from '../contract/run.js'

export interface WorkshopOptions {
  /** Whether what the operator allows is all that may be done. */
  readonly isHeld?: boolean
}

/** A platform whose every template is this root: handed in by whoever knows engines. */
export type Workshop = (root: TemplateRoot, options?: WorkshopOptions) => Platform

/** A sandbox with the draft as its root, which it cannot write to. */
export interface Bench extends AsyncDisposable {
  /** What it prints is handed over as it comes. */
  run(argv: readonly [string, ...string[]], onStdout?: (bytes: Uint8Array) => void): Promise<BenchResult>
}

export interface BenchResult {
  /** In words; undefined when it exited with 0. */
  readonly failure: string | undefined
}

const mostWords = 4096

export interface BenchOptions {
  readonly signal?: AbortSignal | undefined
  /** What one program may take. */
  readonly time?: string
}

export async function openBench(workshop: Workshop, root: TemplateRoot, { signal, time = '1h' }: BenchOptions = {}): Promise<Bench> {
  const platform = workshop(root)
  const calls = signal ? { signal } : {}
  try {
    const { id } = await platform.create(
      { template: root.name, name: 'template build', lifetime: '2h', limits: { time, ...(await limitsHere(platform)) } },
      calls,
    )
    return {
      run: (argv, onStdout) => runIn(platform, { id, argv, onStdout, signal }),
      [Symbol.asyncDispose]: () => platform[Symbol.asyncDispose](),
    }
  } catch (error) {
    await platform[Symbol.asyncDispose]()
    if (!(error instanceof SandboxError) || signal?.aborted === true) throw error
    throw new SandboxError(error.code, `the template cannot be finished, because no sandbox can be made here: ${error.message}`, {
      hint: 'glovebox doctor',
      cause: error,
    })
  }
}

/** Compiling is work: it gets what there is, where that can be given at all. */
async function limitsHere(platform: Platform): Promise<{ cpus?: number }> {
  const probe = (await platform.probe()).find(({ available, isolates }) => available && isolates)
  return probe?.limits.cpus.enforced === true ? { cpus: availableParallelism() } : {}
}

interface BenchRun {
  readonly id: string
  readonly argv: readonly [string, ...string[]]
  readonly onStdout: ((bytes: Uint8Array) => void) | undefined
  readonly signal: AbortSignal | undefined
}

async function runIn(platform: Platform, { id, argv, onStdout, signal }: BenchRun): Promise<BenchResult> {
  const program = await platform.start(id, { command: [...argv] }, signal ? { signal } : {})
  let words = ''
  try {
    for await (const { type, bytes } of program.output) {
      signal?.throwIfAborted()
      if (type === 'stdout') onStdout?.(bytes)
      else words = `${words}${Buffer.from(bytes).toString('utf8')}`.slice(-mostWords)
    }
  } catch (error) {
    await program.kill('the build was given up').catch(() => undefined)
    throw error
  }
  const { outcome } = await program.ended
  return { failure: failureOf(outcome, words) }
}

function failureOf(outcome: Outcome, words: string): string | undefined {
  if (outcome.kind === 'exited' && outcome.code === 0) return undefined
  const said = words.trim().split('\n').at(-1) ?? ''
  if (outcome.kind === 'not-started' || outcome.kind === 'killed') return outcome.reason
  const how = outcome.kind === 'exited' ? `exit code ${outcome.code}` : outcome.kind
  return said === '' ? how : `${said} (${how})`
}
