import type { CodeEnding, CodeEvent, PlatformExecution } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import { Execution, type Gathered, type ReadFile } from './code-execution.js'
import { type CodeOptions, linesOf } from './code-options.js'
import { Result } from './code-result.js'
import { GatheredBytes } from './gathered-bytes.js'

export type CodeRunEvent =
  | { readonly type: 'stdout' | 'stderr'; readonly bytes: Uint8Array }
  | { readonly type: 'result'; readonly result: Result }
  /** To be answered with `answer()`; only with `input: true`. */
  | { readonly type: 'ask'; readonly prompt: string; readonly isSecret: boolean }
  /** The last one; what was told by events before is not in it again. */
  | { readonly type: 'end'; readonly execution: Execution }

export interface CodeOrder {
  readonly options: CodeOptions
  readonly start: () => Promise<StartedCode>
}

export interface StartedCode {
  readonly execution: PlatformExecution
  /** Of stdout and stderr together, as much is kept. */
  readonly outputBytes: number
  readonly read: ReadFile
  /** What is to be done when it is over, before anyone is told; the ending is undefined when the sandbox failed. */
  readonly finish?: (ending: CodeEnding | undefined) => Promise<void>
}

type Use = 'awaited' | 'iterated'
type ToldEvent = Exclude<CodeRunEvent, { readonly type: 'end' }>
type Decoders = Readonly<Record<'stdout' | 'stderr', InstanceType<typeof TextDecoder>>>

const nothing: Gathered = { results: [], stdout: '', stderr: '', truncated: false }

/**
 * Code that has been asked to run: awaited for its execution, or iterated for its events as they come. It starts in a microtask, by when `for await` has asked for the
 * iterator, and is consumed once. An error of the code is a value; what rejects is a failure of the sandbox, an abort, or what a callback threw.
 */
export class CodeRun implements PromiseLike<Execution>, AsyncIterable<CodeRunEvent> {
  // biome-ignore lint/suspicious/noThenProperty: code is awaited for its execution
  readonly then: Promise<Execution>['then'] = (onResult, onError) => this.#awaited().then(onResult, onError)
  readonly catch: Promise<Execution>['catch'] = (onError) => this.#awaited().catch(onError)
  readonly finally: Promise<Execution>['finally'] = (onSettled) => this.#awaited().finally(onSettled)
  readonly #options: CodeOptions
  readonly #started: Promise<StartedCode>
  readonly #lines: string[]
  readonly #captured: Promise<Execution>
  #use: Use | undefined
  #isCaptured = false

  constructor({ options, start }: CodeOrder) {
    this.#options = options
    this.#lines = linesOf(options.input)
    this.#started = Promise.resolve().then(() => {
      this.#isCaptured = this.#use !== 'iterated'
      return start()
    })
    this.#captured = this.#started.then((started) => (this.#isCaptured ? this.#capture(started) : Promise.reject(consumed())))
    // Someone who only iterates, or who does not care, is not to be told of a failure by a crash.
    this.#captured.catch(() => undefined)
  }

  /** Leaving the iteration early interrupts the code. */
  [Symbol.asyncIterator](): AsyncIterableIterator<CodeRunEvent, undefined> {
    const isFirst = this.#use === undefined && !this.#isCaptured
    this.#use ??= 'iterated'
    if (!isFirst) return refuse()
    const events = this.#stream()
    let isBegun = false
    return {
      next: () => {
        isBegun = true
        return events.next()
      },
      return: async () => {
        if (!isBegun) await this.#started.then((started) => end(started, undefined)).catch(() => undefined)
        isBegun = true
        return events.return(undefined)
      },
      [Symbol.asyncIterator]() {
        return this
      },
    }
  }

  /** To an `ask`: a line, or null for the end of input. Rejects with 'conflict' when nothing was asked. */
  async answer(line: string | null): Promise<void> {
    await (await this.#started).execution.answer(line)
  }

  /** Resolves when the execution is over; quiet when it was. */
  async interrupt(): Promise<void> {
    await this.#started.then(({ execution }) => execution.interrupt()).catch(() => undefined)
  }

  #awaited(): Promise<Execution> {
    if (this.#use === 'iterated') return Promise.reject(consumed())
    this.#use = 'awaited'
    return this.#captured
  }

  async #capture(started: StartedCode): Promise<Execution> {
    const gathered = { stdout: new GatheredBytes(), stderr: new GatheredBytes() }
    const results: Result[] = []
    let [room, truncated] = [started.outputBytes, false]
    for await (const event of this.#events(started)) {
      if (event.type === 'result') results.push(event.result)
      // Nobody sees the question, so nobody can answer.
      if (event.type === 'ask') await started.execution.answer(null).catch(() => undefined)
      if (event.type !== 'stdout' && event.type !== 'stderr') continue
      const kept = event.bytes.subarray(0, room)
      room -= kept.length
      truncated ||= kept.length < event.bytes.length
      gathered[event.type].append(kept)
    }
    const texts = { stdout: toText(gathered.stdout.toBytes()), stderr: toText(gathered.stderr.toBytes()) }
    return this.#conclude(started, { results, ...texts, truncated })
  }

  async *#stream(): AsyncGenerator<CodeRunEvent, undefined, undefined> {
    const started = await this.#started
    for await (const event of this.#events(started)) yield event
    yield { type: 'end', execution: await this.#conclude(started, nothing) }
  }

  async #conclude(started: StartedCode, gathered: Gathered): Promise<Execution> {
    const ending = await started.execution.ended
    return new Execution(ending, gathered, started.read)
  }

  /** What is left early is interrupted. Whatever happens, `finish` is called once. */
  async *#events(started: StartedCode): AsyncGenerator<ToldEvent, void, undefined> {
    const { execution } = started
    const texts = { stdout: decoder(), stderr: decoder() }
    let ending: CodeEnding | undefined
    try {
      for await (const event of execution.events) {
        const told = await this.#tell(event, texts, execution)
        if (told) yield told
      }
      ending = await execution.ended
    } finally {
      await end(started, ending)
    }
    this.#options.signal?.throwIfAborted()
  }

  /** Undefined for what was dealt with. */
  async #tell(event: CodeEvent, texts: Decoders, execution: PlatformExecution): Promise<ToldEvent | undefined> {
    const { onStdout, onStderr, onResult } = this.#options
    switch (event.type) {
      case 'stdout':
      case 'stderr': {
        const text = texts[event.type].decode(event.bytes, { stream: true })
        if (text !== '') await (event.type === 'stdout' ? onStdout : onStderr)?.(text)
        return event
      }
      case 'result': {
        const result = new Result(event.result)
        await onResult?.(result)
        return { type: 'result', result }
      }
      case 'ask':
        return this.#ask(event, execution)
    }
  }

  async #ask(event: Extract<CodeEvent, { readonly type: 'ask' }>, execution: PlatformExecution): Promise<typeof event | undefined> {
    const { onInput, input } = this.#options
    if (!onInput && input === true) return event
    const line = onInput ? await onInput(event.prompt, { isSecret: event.isSecret }) : this.#lines.shift()
    // It may have been interrupted meanwhile.
    await execution.answer(line ?? null).catch((error: unknown) => {
      if (!(error instanceof SandboxError) || error.code !== 'conflict') throw error
    })
    return undefined
  }
}

/** Without an ending it was left, or the sandbox failed, which its consumer is told. */
async function end({ execution, finish }: StartedCode, ending: CodeEnding | undefined): Promise<void> {
  if (ending) {
    await finish?.(ending)
    return
  }
  await execution.interrupt()
  await finish?.(undefined).catch(() => undefined)
}

function decoder(): InstanceType<typeof TextDecoder> {
  return new TextDecoder('utf-8', { ignoreBOM: true })
}

// eslint-disable-next-line @typescript-eslint/require-await -- an async generator is the shortest way to an async iterator
async function* refuse(): AsyncGenerator<never, undefined, undefined> {
  throw new SandboxError('conflict', 'an execution is consumed once, and this one is being awaited or iterated already')
}

function consumed(): SandboxError {
  return new SandboxError('conflict', 'this execution is being iterated, so it has no captured result')
}

/** A byte order mark is a part of what was printed. */
function toText(bytes: Uint8Array): string {
  return decoder().decode(bytes)
}
