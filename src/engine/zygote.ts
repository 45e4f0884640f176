/**
 * An interpreter inside a cell, started once with modules that are imported ahead, and from which runs are forked into their liners. It never sees anything of a run. When
 * it dies it is started again, and until it is there runs are started as ever, which takes longer.
 */
import type { StartRequest, WardenProcess } from '../channel/index.js'
import type { CellRun } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { ProgramSurroundings } from './program-starter.js'
import { canBecome } from './python-command.js'
import { baseEnvironment, countedIn, resources } from './start-request.js'

export interface ZygoteOrder {
  readonly language: 'python'
  /** Names of modules. */
  readonly imports: readonly string[]
}

export interface ZygoteFiles {
  /** Its source. */
  readonly bootstrap: string
  /** What makes liners, to be loaded by it. */
  readonly library: Uint8Array
}

interface Wish {
  readonly order: ZygoteOrder
  readonly files: ZygoteFiles
}

interface Living {
  readonly program: WardenProcess
  /** Its own path. */
  readonly executable: string
  readonly env: Readonly<Record<string, string>>
}

/** One that lived for less than this is not worth another. */
const worthwhileMs = 1000
const mostSaidBytes = 4096
/** Threads that a library starts when it is imported would be in no fork. */
const oneThread = { OPENBLAS_NUM_THREADS: '1', OMP_NUM_THREADS: '1', MKL_NUM_THREADS: '1' }
const moduleName = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/

export class Zygote {
  readonly #surroundings: () => ProgramSurroundings
  #wish: Wish | undefined
  #coming: { readonly key: string; readonly done: Promise<void> } | undefined
  #living: Living | undefined
  #isOver = false

  constructor(surroundings: () => ProgramSurroundings) {
    this.#surroundings = surroundings
  }

  /**
   * Resolves when one of this kind is there. Throws SandboxError: 'invalid' for a module that cannot be imported, 'unsupported' where there is no interpreter,
   * 'conflict' when there is one of another kind.
   */
  async ensure(order: ZygoteOrder, files: ZygoteFiles, signal?: AbortSignal): Promise<void> {
    const key = keyOf(order)
    if (this.#coming && this.#coming.key !== key) throw new SandboxError('conflict', 'imports: this cell has a zygote with others')
    this.#wish = { order, files }
    if (!this.#coming) {
      const done = this.#start(this.#wish)
      this.#coming = { key, done }
      done.catch(() => {
        this.#coming = undefined
      })
    }
    await orAborted(this.#coming.done, signal)
  }

  /** The request as one for a fork of it; as it is when it cannot be one. */
  lend(request: StartRequest): StartRequest {
    const living = this.#living
    return living && request.liner && canBecome(request, living) ? { ...request, liner: { ...request.liner, forked: true } } : request
  }

  /** It ends with its cell. */
  end(): void {
    this.#isOver = true
  }

  async #start(wish: Wish): Promise<void> {
    const surroundings = this.#surroundings()
    const run = surroundings.open.cell.beginRun({ memoryBytes: undefined, processes: undefined })
    const startedAt = Date.now()
    try {
      const living = await startZygote({ wish, run }, surroundings)
      this.#living = living
      living.program.unref()
      void living.program.exited.catch(() => undefined).then(() => this.#bury(run, startedAt))
    } catch (error) {
      run.close().catch(() => undefined)
      throw error
    }
  }

  #bury(run: CellRun, startedAt: number): void {
    run.close().catch(() => undefined)
    this.#living = undefined
    this.#coming = undefined
    if (this.#isOver || !this.#wish || Date.now() - startedAt < worthwhileMs) return
    // Whoever wants to know why there is none asks for it.
    this.ensure(this.#wish.order, this.#wish.files).catch(() => undefined)
  }
}

function keyOf({ language, imports }: ZygoteOrder): string {
  return [language, ...imports].join(' ')
}

interface Birth {
  readonly wish: Wish
  readonly run: CellRun
}

async function startZygote({ wish, run }: Birth, surroundings: ProgramSurroundings): Promise<Living> {
  const { open, inspector, condemn, failure } = surroundings
  const request = countedIn(requestFor(wish, surroundings), run)
  const atGate = inspector && ((pid: number): Promise<void> => inspector.inspectZygote({ pid, request }))
  try {
    await surroundings.checkOpen()
    const patience = AbortSignal.timeout(surroundings.answerMs)
    const result = await open.warden.start(request, { giveUp: patience, ...(atGate && { atGate }) })
    if (!result.started) throw new SandboxError('unsupported', `imports: python3 cannot be started in this template: ${result.text}`)
    return { program: result.process, env: request.env, executable: await readiness(result.process, patience) }
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'not-enforced') throw await condemn(error)
    throw error instanceof SandboxError && error.code !== 'broken' ? error : await failure(error)
  }
}

function requestFor({ order, files }: Wish, { open, root }: ProgramSurroundings): StartRequest {
  const { liners } = open.cell
  if (!liners) throw new SandboxError('unsupported', 'this cell gives no liners to its runs', { hint: 'glovebox doctor' })
  const strange = order.imports.find((name) => !moduleName.test(name))
  if (strange !== undefined) throw new SandboxError('invalid', `imports: '${strange.slice(0, 80)}' is no name of a module`)
  const programs = baseEnvironment(root, { home: '/home/user', name: 'user' })
  const own = Object.entries(oneThread).filter(([name, value]) => programs[name] !== value)
  return {
    argv: ['python3', '-c', loaderOf(files), own.map(([name]) => name).join(), ...order.imports],
    env: { ...programs, ...oneThread },
    cwd: '/',
    uid: liners.zygote.uid,
    gid: liners.zygote.gid,
    capabilities: 0n,
    rlimits: [{ resource: resources.core, soft: 0n, hard: 0n }],
    stdin: false,
    zygote: Buffer.concat([files.library, Buffer.from(files.bootstrap)]),
  }
}

/**
 * Reads the source from behind the library and executes it. What compiling takes of memory stays with a child; an argument would be kept several times over. Of
 * its names nothing is left in the namespace that programs get.
 */
function loaderOf({ bootstrap, library }: ZygoteFiles): string {
  return `def load():
    import marshal, os
    theirs, ours = os.pipe()
    child = os.fork()
    if child == 0:
        with open(ours, 'wb') as made: marshal.dump(compile(os.pread(4, ${Buffer.byteLength(bootstrap)}, ${library.length}), '<glovebox>', 'exec'), made)
        os._exit(0)
    os.close(ours)
    with open(theirs, 'rb') as made: code = made.read()
    os.waitpid(child, 0)
    return marshal.loads(code)
exec(load(), globals().pop('load') and {'__name__': 'glovebox'})`
}

/** The path that it tells once everything is imported. */
async function readiness(program: WardenProcess, patience: AbortSignal): Promise<string> {
  const said = { stdout: '', stderr: '' }
  const kill = (): void => void program.kill().catch(() => undefined)
  patience.addEventListener('abort', kill, { once: true })
  try {
    for await (const event of program.output) {
      if (said[event.type].length < mostSaidBytes) said[event.type] += Buffer.from(event.bytes).toString()
      const path = /^ready (.+)\n/m.exec(said.stdout)?.[1]
      if (path !== undefined) return path
    }
  } finally {
    patience.removeEventListener('abort', kill)
  }
  const why = patience.aborted ? 'it took too long' : (said.stderr.trim().split('\n').at(-1) ?? '')
  throw new SandboxError('invalid', `imports: the zygote ended before it was ready: ${why.slice(0, 400)}`)
}

async function orAborted(done: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted()
  if (!signal) return done
  await new Promise<void>((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', abort, { once: true })
    done.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
