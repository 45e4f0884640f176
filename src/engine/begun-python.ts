/**
 * A python3 in a cell that waits, begun before anyone knows what it is to run. It passes the gate as every program does: in its group, with its ids, limits and filter, looked at before
 * its execve. Then it starts, imports what it is to have ahead, and waits to be told folder, arguments and environment by its aside, as which program it goes on in the same process.
 *
 * Nothing of a guest's has run in its cell before, and nothing does while it is there: it is told as the very first program of its sandbox, or ended first. What it answers is believed
 * for the same reason. It says `taken` when its descriptors are closed and before the program's code; one that ended without having said so never ran any of it.
 */
import { encodeTold, type ReadyProgram, type StartRequest, type StartResult, type WardenProcess } from '../channel/index.js'
import type { GuestUser, RunLimits } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { ReadyLook } from './inspector.js'
import { canBecome } from './python-command.js'
import type { ReadyPlace, ReadyRun } from './ready-programs.js'
import { countedIn } from './start-request.js'
import { noPieces } from './watched-pieces.js'

/** Where it is to be begun, and as what. */
export interface BegunOrder {
  /** As a program of its user's would be started, but for its arguments. */
  readonly request: StartRequest
  readonly user: GuestUser
  readonly limits: RunLimits
  /** Such as `python3`. */
  readonly program: string
  /** Names of modules. */
  readonly imports: readonly string[]
}

/** What is sent into such an interpreter: its source, and what interpreters of this machine made of it. */
export class BegunSource {
  readonly #read: () => Promise<Uint8Array> | undefined
  #source: Promise<Uint8Array> | undefined
  /** By the template, and the program in it. */
  readonly #compiled = new Map<string, { readonly magic: string; readonly code: Uint8Array }>()

  constructor(read: () => Promise<Uint8Array> | undefined) {
    this.#read = read
  }

  /** Of its names nothing is left in the namespace that the program gets. Compiled code is only for an interpreter that says it is of the same version. */
  async loaderFor(key: string): Promise<{ readonly code: Uint8Array; readonly argv: readonly string[] }> {
    const known = this.#compiled.get(key)
    const code = known?.code ?? (await (this.#source ??= this.#read()))
    if (!code) throw new SandboxError('unsupported', 'imports: no interpreter is begun ahead here')
    const read = `open(3,'rb',closefd=False).read(${code.length})`
    if (!known) return { code, argv: ['-c', `exec(compile(${read},'<glovebox>','exec'),{'__name__':'glovebox'})`, 'source'] }
    const isSame = `__import__('_frozen_importlib_external').MAGIC_NUMBER.hex()=='${known.magic}'`
    return { code, argv: ['-c', `exec(__import__('marshal').loads(${read}),{'__name__':'glovebox'}) if ${isSame} else __import__('os')._exit(1)`, 'code'] }
  }

  keep(key: string, magic: string, hex: string): void {
    this.#compiled.set(key, { magic, code: Buffer.from(hex, 'hex') })
  }

  /** Whether there was any. */
  forget(key: string): boolean {
    return this.#compiled.delete(key)
  }
}

const mostSaid = 2 ** 20

/** Line by line what it answers. */
class Answers {
  readonly #pieces: AsyncIterator<Uint8Array>
  #held = ''

  constructor(aside: AsyncIterable<Uint8Array>) {
    this.#pieces = aside[Symbol.asyncIterator]()
  }

  /** Undefined when it has ended. */
  async next(): Promise<string | undefined> {
    for (;;) {
      const at = this.#held.indexOf('\n')
      if (at >= 0) {
        const line = this.#held.slice(0, at)
        this.#held = this.#held.slice(at + 1)
        return line
      }
      const next = await this.#pieces.next()
      if (next.done || this.#held.length > mostSaid) return undefined
      this.#held += Buffer.from(next.value).toString()
    }
  }

  /** Nothing more is of interest. */
  leave(): void {
    void this.#pieces.return?.()
  }
}

export interface BegunPlace extends ReadyPlace {
  readonly source: BegunSource
  /** Of its template, so that what was compiled by its interpreter is found again. */
  readonly templateKey: string
}

/** Throws SandboxError: 'unsupported' where there is no such interpreter, 'invalid' where it does not become ready, 'not-enforced' when it is not as demanded. */
export async function beginPython(order: BegunOrder, place: BegunPlace, giveUp: AbortSignal): Promise<ReadyRun> {
  const key = `${place.templateKey} ${order.program}`
  try {
    return await beginOnce({ ...order, key }, place, giveUp)
  } catch (error) {
    // The interpreter may be another by now than the one that compiled it.
    const isWorthAnother = place.source.forget(key) && error instanceof SandboxError && error.code === 'invalid' && !giveUp.aborted
    if (!isWorthAnother) throw error
    return await beginOnce({ ...order, key }, place, giveUp)
  }
}

async function beginOnce(order: BegunOrder & { readonly key: string }, place: BegunPlace, giveUp: AbortSignal): Promise<ReadyRun> {
  const { open, inspector, source } = place
  const { program, imports, user, key } = order
  if (!inspector) throw new SandboxError('unsupported', 'imports: nobody looks at programs in such a cell, so none can wait there')
  const run = open.cell.beginRun(order.limits)
  let process: WardenProcess | undefined
  try {
    const { code, argv } = await source.loaderFor(key)
    const request = countedIn({ ...order.request, argv: [program, ...argv, ...imports], cwd: '/', stdin: true, aside: true }, run)
    let look: ReadyLook | undefined
    const atGate = async (pid: number): Promise<void> => {
      look = await inspector.inspectReady({ pid, user, request })
    }
    const result = await open.warden.start(request, { atGate, giveUp })
    if (!result.started) throw new SandboxError('unsupported', `imports: ${program} cannot be started in this template: ${result.text}`)
    process = result.process
    if (!look) throw new SandboxError('internal', `${program} was started without a look at it`)
    const answers = new Answers(process.aside ?? noPieces)
    // Only of one that was sent source, and once.
    const keep = argv.at(-1) === 'source' ? (magic: string, hex: string): void => source.keep(key, magic, hex) : undefined
    const { executable, spentMs } = await readiness({ process, answers, code }, giveUp, keep)
    process.unref()
    const waiting = { startedAs: program, executable, env: order.request.env }
    return { run, look, spentMs, program: new BegunProgram(process, answers), fits: (told) => canBecome(told, waiting) }
  } catch (error) {
    await process?.kill().catch(() => undefined)
    run.close().catch(() => undefined)
    throw error
  }
}

interface Beginning {
  readonly process: WardenProcess
  readonly answers: Answers
  readonly code: Uint8Array
}

interface Readiness {
  readonly executable: string
  /** Of processor time, until then. */
  readonly spentMs: number
}

async function readiness({ process, answers, code }: Beginning, giveUp: AbortSignal, keep?: (magic: string, hex: string) => void): Promise<Readiness> {
  let onCode = keep
  const kill = (): void => void process.kill().catch(() => undefined)
  giveUp.addEventListener('abort', kill, { once: true })
  if (giveUp.aborted) kill()
  try {
    await process.write(code)
    for (let line = await answers.next(); line !== undefined; line = await answers.next()) {
      const [word, first = '', ...rest] = line.split(' ')
      if (word === 'code') onCode?.(first, rest.join(''))
      if (word === 'code') onCode = undefined
      if (word === 'ready' && /^\d{1,12}$/.test(first)) return { spentMs: Number(first) / 1000, executable: rest.join(' ') }
    }
  } finally {
    giveUp.removeEventListener('abort', kill)
  }
  const why = giveUp.aborted ? 'it took too long' : await lastWords(process)
  throw new SandboxError('invalid', `imports: the interpreter ended before it was ready: ${why}`)
}

async function lastWords(process: WardenProcess): Promise<string> {
  let said = ''
  for await (const { type, bytes } of process.output) if (type === 'stderr' && said.length < mostSaid) said += Buffer.from(bytes).toString()
  return (said.trim().split('\n').at(-1) ?? '').slice(0, 400)
}

class BegunProgram implements ReadyProgram {
  readonly #process: WardenProcess
  readonly #answers: Answers
  /** The next; undefined when it has ended. */
  readonly #answer: Promise<string | undefined>
  #isWaiting = true

  constructor(process: WardenProcess, answers: Answers) {
    this.#process = process
    this.#answers = answers
    this.#answer = answers.next()
    const end = (): void => {
      this.#isWaiting = false
    }
    this.#answer.then(end, end)
  }

  get isWaiting(): boolean {
    return this.#isWaiting
  }

  async launch(told: StartRequest, { giveUp }: { readonly giveUp?: AbortSignal } = {}): Promise<StartResult | undefined> {
    const payload = encodeTold(told)
    if (!payload || !this.#isWaiting) return undefined
    this.#isWaiting = false
    const process = this.#process
    const kill = (): void => void process.kill().catch(() => undefined)
    process.ref()
    giveUp?.addEventListener('abort', kill, { once: true })
    if (giveUp?.aborted) kill()
    try {
      const [, , answer] = await Promise.all([process.write(payload), process.endInput(), this.#answer])
      this.#answers.leave()
      if (giveUp?.aborted) await process.kill()
      // One that was killed meanwhile ends as a program that was killed as soon as it began.
      return answer === 'taken' || giveUp?.aborted ? { started: true, process } : undefined
    } finally {
      giveUp?.removeEventListener('abort', kill)
    }
  }

  async drop(): Promise<void> {
    this.#isWaiting = false
    this.#process.discardOutput()
    await this.#process.kill()
  }
}
