/**
 * Starts cells by a small process of the launcher's: this one has much memory and many descriptors, and the more it has of both, the longer it takes to fork. What is
 * said on the two pipes, and how streams come about, is told in warden/launcher-serve.c.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { constants } from 'node:os'
import { SandboxError } from '../contract/errors.js'
import { type ProcessEnd, type SpawnedProcess, spawnedProcess } from './spawn.js'

const order = { launch: 1, signal: 2, forget: 3 } as const
const news = { launched: 1, exited: 2, killed: 3, refused: 4 } as const
const newsBytes = 12
/** All that there is room for: of a shorter one some versions of Node ask for another, with zeros to the end. */
const nameLength = 107
/** How long it stays when nothing that it started is left. */
const lingerMs = 10_000

export interface LaunchServer {
  /** Of the parent of all that it starts. */
  readonly pid: number
  /** It starts nothing any more. */
  readonly isOver: boolean
  /** The same as `spawnProcess` for arguments of the launcher, with so many pipes besides the usual three. */
  launch(argv: readonly string[], pipes: number): Promise<SpawnedProcess>
}

/** Rejects when it cannot be started. It keeps this process alive only while something is awaited, and ends by itself when it is not used. */
export function startLaunchServer(launcher: string): Promise<LaunchServer> {
  const name = `glovebox-${process.pid}-`.padEnd(nameLength, randomBytes(nameLength).toString('hex'))
  const child = spawn(launcher, ['--serve', name, `${process.pid}`], { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'ignore'] })
  return new Promise((resolve, reject) => {
    const server = new RunningServer(child, { name, onReady: () => resolve(server) })
    const fail = (cause: unknown): void => reject(new SandboxError('unavailable', `${launcher} does not serve`, { hint: 'glovebox doctor', cause }))
    child.once('error', fail)
    child.once('exit', fail)
  })
}

interface Launched {
  isRunning: boolean
  readonly started: (pid: number) => void
  readonly refused: (why: Error) => void
  readonly ended: (end: ProcessEnd) => void
}

class RunningServer implements LaunchServer {
  readonly #child: ChildProcess
  readonly #orders: Socket
  readonly #news: Socket
  readonly #path: string
  readonly #onReady: () => void
  readonly #cells = new Map<number, Launched>()
  #isOver = false
  #last = 0
  #waiting = 0
  #heard = Buffer.alloc(0)
  #linger: NodeJS.Timeout | undefined

  constructor(child: ChildProcess, { name, onReady }: { readonly name: string; readonly onReady: () => void }) {
    this.#child = child
    this.#path = `\0${name}`
    this.#onReady = onReady
    this.#orders = child.stdin as Socket
    this.#news = child.stdout as Socket
    for (const stream of [this.#orders, this.#news]) stream.on('error', () => this.#end()).unref()
    this.#news.on('data', (chunk: Buffer) => this.#hear(chunk))
    child.once('exit', () => this.#end())
    child.unref()
  }

  get pid(): number {
    return this.#child.pid as number
  }

  get isOver(): boolean {
    return this.#isOver
  }

  async launch(argv: readonly string[], pipes: number): Promise<SpawnedProcess> {
    clearTimeout(this.#linger)
    const id = (this.#last += 1)
    let ended: Launched['ended'] = () => undefined
    const end = new Promise<ProcessEnd>((resolve) => (ended = resolve))
    const started = new Promise<number>((resolve, reject) => this.#cells.set(id, { isRunning: false, started: resolve, refused: reject, ended }))
    const streams = Array.from({ length: 3 + pipes }, (_, place) => this.#connect(id, place))
    this.#order(id, order.launch, numbers(streams.length), Buffer.from(`${argv.join('\0')}\0`))
    const letGo = this.#hold()
    try {
      const pid = await started
      const [stdin, stdout, stderr, ...more] = streams as [Socket, Socket, Socket, ...Socket[]]
      return spawnedProcess({
        ...{ pid, stdin, stdout, stderr },
        pipes: new Map(more.map((stream, index) => [index + 3, stream])),
        ended: end,
        signal: (name) => this.#order(id, order.signal, numbers(constants.signals[name])),
        hold: () => this.#hold(),
      })
    } catch (error) {
      for (const stream of streams) stream.destroy()
      throw new SandboxError('unavailable', `the launcher could not be started: ${(error as Error).message}`, { hint: './glovebox doctor', cause: error })
    } finally {
      letGo()
    }
  }

  #connect(id: number, place: number): Socket {
    // What is written to has an end of its own, as a pipe does.
    const stream = connect({ path: this.#path, allowHalfOpen: place === 0 })
    stream.on('error', (error) => this.#refuse(id, error))
    stream.write(numbers(id, place))
    return stream
  }

  /** Until what this returns is called, news are waited for. */
  #hold(): () => void {
    if (this.#waiting === 0) this.#news.ref()
    this.#waiting += 1
    return () => {
      this.#waiting -= 1
      if (this.#waiting === 0) this.#news.unref()
    }
  }

  #order(id: number, kind: number, ...payload: readonly Buffer[]): void {
    const length = payload.reduce((sum, { byteLength }) => sum + byteLength, 0)
    if (!this.#isOver) this.#orders.write(Buffer.concat([numbers(id, kind, length), ...payload]))
  }

  #hear(chunk: Buffer): void {
    this.#heard = Buffer.concat([this.#heard, chunk])
    let at = 0
    for (; this.#heard.length - at >= newsBytes; at += newsBytes) {
      const [id = 0, kind = 0, value = 0] = [0, 4, 8].map((offset) => this.#heard.readUInt32LE(at + offset))
      if (id === 0) this.#onReady()
      else this.#take(id, kind, value)
    }
    this.#heard = this.#heard.subarray(at)
  }

  #take(id: number, kind: number, value: number): void {
    const cell = this.#cells.get(id)
    if (kind === news.launched && cell) {
      cell.isRunning = true
      cell.started(value)
      return
    }
    this.#drop(id)
    if (kind === news.refused) cell?.refused(new Error(errnoName(value)))
    else cell?.ended(kind === news.exited ? { code: value, signal: null } : { code: null, signal: signalName(value) })
  }

  /** Of one that runs, a broken stream is the affair of whoever uses it. */
  #refuse(id: number, error: Error): void {
    const cell = this.#cells.get(id)
    if (cell === undefined || cell.isRunning) return
    this.#order(id, order.forget)
    this.#drop(id)
    cell.refused(error)
  }

  #drop(id: number): void {
    this.#cells.delete(id)
    clearTimeout(this.#linger)
    if (this.#cells.size === 0) this.#linger = setTimeout(() => this.#end(), lingerMs).unref()
  }

  /** What it started dies with it, which nobody saw. */
  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#linger)
    this.#orders.destroy()
    this.#news.destroy()
    for (const { isRunning, refused, ended } of this.#cells.values()) {
      if (isRunning) ended({ code: null, signal: 'SIGKILL' })
      else refused(new Error('the launch server ended'))
    }
    this.#cells.clear()
  }
}

function numbers(...values: readonly number[]): Buffer {
  const buffer = Buffer.alloc(4 * values.length)
  values.forEach((value, index) => buffer.writeUInt32LE(value, 4 * index))
  return buffer
}

function nameIn(table: Readonly<Record<string, number>>, value: number): string | undefined {
  return Object.keys(table).find((name) => table[name] === value)
}

function errnoName(value: number): string {
  return nameIn(constants.errno, value) ?? `errno ${value}`
}

function signalName(value: number): NodeJS.Signals {
  return (nameIn(constants.signals, value) ?? 'SIGKILL') as NodeJS.Signals
}
