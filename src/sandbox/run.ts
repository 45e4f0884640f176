import { SandboxError } from '../contract/errors.js'
import type { NetworkSummary } from '../contract/network.js'
import type { PlatformProcess } from '../contract/platform.js'
import type { Receipt } from '../contract/receipt.js'
import type { Ending, Outcome, OutputEvent, Usage } from '../contract/run.js'
import { GatheredBytes } from './gathered-bytes.js'
import { chunksOf, Feeding, type InputSource } from './input.js'

export interface RunResult extends Ending {
  readonly outcome: Outcome
  /** Set exactly when the program exited by itself. */
  readonly exitCode: number | undefined
  /** As UTF-8; what is not is replaced by U+FFFD. The bytes themselves are in `stdoutBytes`. */
  readonly stdout: string
  readonly stderr: string
  readonly stdoutBytes: Uint8Array
  readonly stderrBytes: Uint8Array
  readonly truncated: boolean
  readonly usage: Usage
  readonly driver: string
  /** Of a run in a sandbox of its own for which one was asked. */
  readonly receipt?: Receipt
  /** What it did by the network, of a run in a sandbox of its own that has one. */
  readonly network?: NetworkSummary
}

/** What is known when a run in a sandbox of its own is over. */
export type Concluded = Pick<RunResult, 'receipt' | 'network'>

export interface ExitEvent extends Ending {
  readonly type: 'exit'
  readonly exitCode: number | undefined
  /** Of a run in a sandbox of its own for which one was asked. */
  readonly receipt?: Receipt
  /** What it did by the network, of a run in a sandbox of its own that has one. */
  readonly network?: NetworkSummary
}

export type RunEvent = OutputEvent | ExitEvent

export interface RunOrder {
  /** Known once it is started. */
  readonly driver: () => string
  readonly stdin: InputSource | undefined
  /** Starts the program; `captured` says whether its output is kept, and so limited. */
  start(mode: { readonly captured: boolean }): Promise<PlatformProcess>
  /** Called once when it is over, before anyone is told; not `isWhole` when it was left, or its sandbox failed. */
  readonly conclude?: (about: { readonly isWhole: boolean }) => Promise<Concluded>
}

/**
 * A run that has been asked for: awaited for its result, or iterated for its output as it comes.
 *
 * The program is started in a microtask, by when `for await` has asked for the iterator. A run that is iterated by then is streamed: it has
 * back-pressure, and an output limit only where the sandbox states one or a policy caps it. Any other is captured within the output limit, awaited or not; iterated later, it is handed over when it has ended.
 */
export class Run implements PromiseLike<RunResult>, AsyncIterable<RunEvent> {
  // biome-ignore lint/suspicious/noThenProperty: a run is awaited for its result
  readonly then: Promise<RunResult>['then'] = (onResult, onError) => this.#awaited().then(onResult, onError)
  readonly catch: Promise<RunResult>['catch'] = (onError) => this.#awaited().catch(onError)
  readonly finally: Promise<RunResult>['finally'] = (onSettled) => this.#awaited().finally(onSettled)
  readonly #order: RunOrder
  readonly #program: Promise<PlatformProcess>
  readonly #result: Promise<RunResult>
  #use: 'awaited' | 'iterated' | undefined
  #hasStarted = false
  #isCaptured = false
  #concluding: Promise<Concluded> | undefined
  #feeding: Feeding | undefined

  constructor(order: RunOrder) {
    this.#order = order
    this.#program = Promise.resolve().then(() => this.#start())
    this.#result = this.#program.then((program) => (this.#isCaptured ? this.#capture(program) : Promise.reject(streamed())))
    // Someone who only iterates, or who does not care, is not to be told of a failure by a crash.
    this.#result.catch(() => undefined)
  }

  /** Leaving the iteration early kills the program. */
  [Symbol.asyncIterator](): AsyncIterableIterator<RunEvent, undefined> {
    const hasUse = this.#use !== undefined
    this.#use ??= 'iterated'
    const events = hasUse ? refuse() : this.#hasStarted ? this.#replay() : this.#stream()
    let isOver = hasUse
    return {
      async next() {
        const result = await events.next()
        if (result.done) isOver = true
        return result
      },
      return: async () => {
        if (!isOver) await this.#program.then((program) => this.#leave(program)).catch(() => undefined)
        isOver = true
        return events.return(undefined)
      },
      [Symbol.asyncIterator]() {
        return this
      },
    }
  }

  #awaited(): Promise<RunResult> {
    if (this.#use === 'iterated') return Promise.reject(streamed())
    this.#use = 'awaited'
    return this.#result
  }

  async #start(): Promise<PlatformProcess> {
    this.#hasStarted = true
    this.#isCaptured = this.#use !== 'iterated'
    const { stdin } = this.#order
    const chunks = stdin === undefined ? undefined : chunksOf(stdin)
    const program = await this.#order.start({ captured: this.#isCaptured })
    program.ended.then(
      () => this.#feeding?.stop(),
      () => this.#feeding?.stop(),
    )
    if (chunks) this.#feeding = new Feeding(program, chunks)
    return program
  }

  async #leave(program: PlatformProcess): Promise<void> {
    await program.kill('its reader left')
    await this.#conclude({ isWhole: false })
  }

  /** A run that is called off, or that its sandbox ends with, is over where its output breaks off. */
  async *#outputOf(program: PlatformProcess): AsyncGenerator<OutputEvent, undefined, undefined> {
    try {
      yield* program.output
    } catch (error) {
      await this.#conclude({ isWhole: false }).catch(() => undefined)
      throw error
    }
  }

  /** Its ending once all that it printed was read. */
  async #endingOf(program: PlatformProcess): Promise<Ending & Concluded> {
    try {
      const ending = await program.ended
      this.#feeding?.throwIfFailed()
      return { ...ending, ...(await this.#conclude({ isWhole: true })) }
    } finally {
      await this.#conclude({ isWhole: false })
    }
  }

  /** Once, whoever is the first to know. */
  #conclude(about: { readonly isWhole: boolean }): Promise<Concluded> {
    this.#concluding ??= this.#order.conclude?.(about) ?? Promise.resolve({})
    return this.#concluding
  }

  async #capture(program: PlatformProcess): Promise<RunResult> {
    const gathered = { stdout: new GatheredBytes(), stderr: new GatheredBytes() }
    for await (const { type, bytes } of this.#outputOf(program)) gathered[type].append(bytes)
    const ending = await this.#endingOf(program)
    const stdoutBytes = gathered.stdout.toBytes()
    const stderrBytes = gathered.stderr.toBytes()
    const texts = { stdout: toText(stdoutBytes), stderr: toText(stderrBytes) }
    return { ...ending, exitCode: exitCodeOf(ending.outcome), ...texts, stdoutBytes, stderrBytes, driver: this.#order.driver() }
  }

  async *#stream(): AsyncGenerator<RunEvent, undefined, undefined> {
    const program = await this.#program
    for await (const event of this.#outputOf(program)) yield event
    const ending = await this.#endingOf(program)
    yield { type: 'exit', ...ending, exitCode: exitCodeOf(ending.outcome) }
  }

  async *#replay(): AsyncGenerator<RunEvent, undefined, undefined> {
    const { outcome, exitCode, usage, truncated, stdoutBytes, stderrBytes, receipt, network } = await this.#result
    if (stdoutBytes.length > 0) yield { type: 'stdout', bytes: stdoutBytes }
    if (stderrBytes.length > 0) yield { type: 'stderr', bytes: stderrBytes }
    yield { type: 'exit', outcome, exitCode, usage, truncated, ...(receipt && { receipt }), ...(network && { network }) }
  }
}

// eslint-disable-next-line @typescript-eslint/require-await -- an async generator is the shortest way to an async iterator
async function* refuse(): AsyncGenerator<never, undefined, undefined> {
  throw new SandboxError('conflict', 'a run is consumed once, and this one is being awaited or iterated already')
}

function streamed(): SandboxError {
  return new SandboxError('conflict', 'this run is being iterated, so it has no captured result')
}

/** An ending that is no exit has no exit code: not 0, not 1. */
function exitCodeOf(outcome: Outcome): number | undefined {
  return outcome.kind === 'exited' ? outcome.code : undefined
}

/** A byte order mark is a part of what was printed. Made once: to make one takes longer than most outputs take to be read. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

function toText(bytes: Uint8Array): string {
  return bytes.length === 0 ? '' : decoder.decode(bytes)
}
