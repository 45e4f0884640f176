/** The engine's end of the channel: every frame of the warden is judged here, and the first that breaks a rule ends it all. */
import type { CellChannel } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import { Allowance } from './allowance.js'
import { encodeRules, type FileRule } from './file-rules.js'
import { type ConnectionTaker, Guests, type QueryAnswerer } from './guests.js'
import { encodeFrame, encodeHeader, type Frame, FrameDecoder, maxFilterBytes } from './frames.js'
import { Latch } from './latch.js'
import { checkHello, readText } from './messages.js'
import type { Link, Party } from './link.js'
import { Outbox } from './outbox.js'
import { PortConnection, type WardenConnection } from './port-connection.js'
import { Run, type StartResult } from './run.js'
import { encodeReady, encodeStart, type ReadyRequest, type StartRequest } from './start-payload.js'
import { answerOf, type GatedOptions, readyAt, type ReadyProgram, type StartOptions } from './starting.js'
import type { Warden } from './warden.js'

export interface ConnectOptions {
  /** The seccomp filter for every program, as an array of `sock_filter`. */
  readonly filter?: Uint8Array
  /** What every program may execute and read, by Landlock; whatever no rule allows is refused. Without it there are no rules. */
  readonly rules?: readonly FileRule[]
  /** Ends the attempt; without effect once connected. */
  readonly signal?: AbortSignal
}

/** One that may be told something before it has said a word. */
export interface AwaitedWarden {
  readonly warden: Warden
  /** Nothing is read from the channel before this is called. Resolves at HELLO; a channel on which that fails is destroyed. */
  greet(signal?: AbortSignal): Promise<Warden>
  fail(failure: SandboxError): void
}

/** If the channel has `ref` and `unref`, as sockets do, it keeps the process alive exactly while something is awaited: an answer, or the end of a run. */
export function awaitWarden(channel: CellChannel, options: Omit<ConnectOptions, 'signal'> = {}): AwaitedWarden {
  const { filter } = options
  if (filter && (filter.length > maxFilterBytes || filter.length % 8 !== 0))
    throw new SandboxError('invalid', `a filter of ${filter.length} bytes is no array of at most 4096 instructions`)
  const rules = options.rules && encodeRules(options.rules)
  const connection = new Connection(channel)
  if (filter) connection.configure('configure', filter)
  if (rules) connection.configure('rules', rules)
  return { warden: connection, greet: (signal) => greet(connection, signal), fail: (failure) => connection.fail(failure) }
}

/** The same in one step. */
export const connectWarden = async (channel: CellChannel, { signal, ...options }: ConnectOptions = {}): Promise<Warden> =>
  awaitWarden(channel, options).greet(signal)

async function greet(connection: Connection, signal: AbortSignal | undefined): Promise<Warden> {
  const abort = (): void => connection.fail(new SandboxError('closed', 'connecting to the warden was aborted', { cause: signal?.reason }))
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort, { once: true })
  try {
    connection.hear()
    await connection.greeted
    return connection
  } catch (error) {
    signal?.throwIfAborted()
    throw error
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}

const maxPort = 65_535

class Connection implements Warden {
  readonly #channel: CellChannel
  readonly #outbox: Outbox
  readonly #decoder = new FrameDecoder({ from: 'warden', onFrame: (frame) => this.#receive(frame) })
  readonly #greeted = new Latch<void>()
  readonly #ended = new Latch<SandboxError | undefined>()
  readonly #parties = new Map<number, { readonly party: Party; holds: number }>()
  readonly #link: Link
  readonly #guests: Guests
  #isGreeted = false
  #lastId = 0
  #holds = 0

  constructor(channel: CellChannel) {
    this.#channel = channel
    this.#outbox = new Outbox(channel)
    this.#link = {
      outbox: this.#outbox,
      allowance: new Allowance(),
      attach: (party) => this.#attach(party),
      detach: (party) => this.#detach(party),
      letGo: () => this.#release(),
      tell: (of, said) => {
        if (said.length > 0) channel.told?.(of, Buffer.from(said).toString('latin1'))
      },
      hold: () => this.#hold(),
    }
    this.#guests = new Guests(this.#link)
    // From the first word on: what is said may fail before anything is heard.
    channel.on('error', (error) => this.fail(new SandboxError('broken', `the channel to the warden failed: ${error.message}`, { cause: error })))
    this.#hold()
  }

  /** Once. */
  hear(): void {
    const channel = this.#channel
    channel.on('data', (chunk: Uint8Array) => this.#read(chunk))
    channel.on('end', () => this.#channelEnded())
    channel.on('close', () => this.#channelEnded())
    if (channel.destroyed || channel.readableEnded) this.#channelEnded()
  }

  get greeted(): Promise<void> {
    return this.#greeted.promise
  }

  get ended(): Promise<SandboxError | undefined> {
    return this.#ended.promise
  }

  configure(name: 'configure' | 'rules', payload: Uint8Array): void {
    this.#outbox.send(encodeHeader(name, payload.length, {}), payload)
  }

  async start(request: StartRequest, options: StartOptions = {}): Promise<StartResult> {
    const isGated = options.atGate !== undefined
    const payload = encodeStart({ ...request, gate: isGated })
    return await this.#asNext(async (id) => {
      const { stdin, terminal, aside, worker } = request
      const traits = { hasTerminal: terminal !== undefined, hasAside: aside === true, isWorker: worker !== undefined }
      const run = new Run({ id, isFed: stdin, isGated, ...traits, link: this.#link })
      this.#outbox.send(encodeHeader('start', payload.length, { run: id }), payload)
      return await answerOf(run, options)
    })
  }

  async prepare(request: ReadyRequest, options: GatedOptions): Promise<ReadyProgram | undefined> {
    const payload = encodeReady(request)
    const run = await this.#asNext((id) => {
      const begun = new Run({ id, isFed: request.stdin, isGated: true, hasTerminal: false, hasAside: false, isWorker: false, link: this.#link })
      begun.unref()
      this.#outbox.send(encodeHeader('start', payload.length, { run: id }), payload)
      return Promise.resolve(begun)
    })
    return await readyAt(run, options)
  }

  hold(): () => void {
    this.#hold()
    return () => this.#release()
  }

  async connect(port: number): Promise<WardenConnection> {
    if (!Number.isInteger(port) || port < 1 || port > maxPort) throw new SandboxError('invalid', `port ${port} is not between 1 and ${maxPort}`)
    return await this.#asNext(async (id) => {
      const connection = new PortConnection({ id, port, link: this.#link })
      const payload = Buffer.allocUnsafe(2)
      payload.writeUInt16LE(port)
      this.#outbox.send(encodeFrame('connect', { run: id }, payload))
      return await connection.connected
    })
  }

  onConnection(take: ConnectionTaker): void {
    this.#guests.take = take
  }

  onQuery(answer: QueryAnswerer): void {
    this.#guests.answer = answer
  }

  listen(ports: readonly number[]): void {
    this.#guests.listen(ports)
  }

  close(): void {
    if (this.#outbox.failure) return
    this.#outbox.send(encodeFrame('close', {}))
    this.#stop(new SandboxError('closed', 'the sandbox was closed'))
    this.#ended.resolve(undefined)
    this.#channel.end()
  }

  fail(failure: SandboxError): void {
    if (this.#outbox.failure) return
    this.#stop(failure)
    this.#ended.resolve(failure)
    this.#channel.destroy()
  }

  /** Once the channel has room, with a number that was never used. */
  async #asNext<T>(begin: (id: number) => Promise<T>): Promise<T> {
    this.#hold()
    try {
      if (this.#outbox.isFull) await this.#outbox.whenWritable()
      if (this.#outbox.failure) throw this.#outbox.failure
      this.#lastId += 1
      return await begin(this.#lastId)
    } finally {
      this.#release()
    }
  }

  #stop(failure: SandboxError): void {
    this.#outbox.stop(failure)
    this.#greeted.reject(failure)
    for (const { party } of this.#parties.values()) party.fail(failure)
    this.#parties.clear()
    this.#channel.unref?.()
  }

  #channelEnded(): void {
    this.fail(new SandboxError('broken', `the channel to the warden ended${this.#decoder.isInsideFrame ? ' in the middle of a frame' : ''}`))
  }

  #read(chunk: Uint8Array): void {
    if (this.#outbox.failure) return
    try {
      this.#decoder.push(chunk)
    } catch (error) {
      this.fail(error instanceof SandboxError ? error : new SandboxError('internal', 'reading from the warden failed', { cause: error }))
    }
  }

  #receive(frame: Frame): void {
    if (frame.name === 'fatal') throw new SandboxError('broken', `the warden gave up: ${readText(frame.payload)}`)
    if (frame.name === 'hello') {
      this.#greet(frame)
      return
    }
    if (!this.#isGreeted) throw new SandboxError('broken', `the warden sent ${frame.name} before hello`)
    if (frame.name === 'accepted' || frame.name === 'query') {
      this.#guests.receive(frame)
      return
    }
    const entry = this.#parties.get(frame.run)
    if (!entry) throw new SandboxError('broken', `the warden sent ${frame.name} for run ${frame.run}, which awaits nothing`)
    entry.party.receive(frame)
  }

  #greet(frame: Frame): void {
    if (this.#isGreeted) throw new SandboxError('broken', 'the warden sent hello twice')
    this.#link.tell('cell', checkHello(frame.payload))
    this.#isGreeted = true
    this.#greeted.resolve()
    this.#release()
  }

  #attach(party: Party): void {
    const entry = this.#parties.get(party.id)
    if (entry) entry.holds += 1
    else this.#parties.set(party.id, { party, holds: 1 })
    this.#hold()
  }

  #detach(party: Party): void {
    const entry = this.#parties.get(party.id)
    if (!entry) return
    entry.holds -= 1
    if (entry.holds === 0) this.#parties.delete(party.id)
    this.#release()
  }

  #hold(): void {
    this.#holds += 1
    if (this.#holds === 1) this.#channel.ref?.()
  }

  #release(): void {
    this.#holds -= 1
    if (this.#holds === 0 && !this.#outbox.failure) this.#channel.unref?.()
  }
}
