import { type Duplex, duplexPair } from 'node:stream'
import { connectWarden, type StartRequest, type Warden, type WardenProcess } from '../../src/channel/index.js'
import {
  encodeFrame,
  encodeNumberFrame,
  type FrameAddress,
  FrameDecoder,
  type FrameName,
  protocolVersion,
  type StreamNumber,
  windowBytes,
} from '../../src/channel/frames.js'

export interface HeardFrame {
  readonly name: FrameName
  readonly stream: StreamNumber
  readonly run: number
  readonly payload: Buffer
}

export function numbers(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  values.forEach((value, index) => bytes.writeUInt32LE(value, index * 4))
  return bytes
}

/** The other end of a channel, which says whatever a test wants it to say. */
export class ScriptedWarden {
  readonly channel: Duplex
  readonly #wire: Duplex
  readonly #heard: HeardFrame[] = []
  #pending: Buffer[] = []
  #wake: (() => void) | undefined

  constructor() {
    const [engine, wire] = duplexPair()
    this.channel = engine
    this.#wire = wire
    const decoder = new FrameDecoder({
      from: 'engine',
      onFrame: ({ name, stream, run, payload, rest }) => {
        this.#pending.push(Buffer.from(payload))
        if (rest > 0) return
        this.#heard.push({ name, stream, run, payload: Buffer.concat(this.#pending) })
        this.#pending = []
        this.#wake?.()
      },
    })
    wire.on('data', (chunk: Buffer) => decoder.push(chunk))
    wire.on('error', () => {})
  }

  /** From now on nothing the engine says is read. */
  stopReading(): void {
    this.#wire.pause()
  }

  resumeReading(): void {
    this.#wire.resume()
  }

  sendRaw(bytes: Uint8Array): void {
    this.#wire.write(bytes)
  }

  send(name: FrameName, address: FrameAddress = {}, payload: Uint8Array = new Uint8Array(0)): void {
    this.sendRaw(encodeFrame(name, address, payload))
  }

  hello(version = protocolVersion, window = windowBytes): void {
    this.send('hello', {}, numbers(version, window))
  }

  gated(run: number, pid = 7): void {
    this.sendRaw(encodeNumberFrame('gated', { run }, pid))
  }

  started(run: number, pid = 7): void {
    this.sendRaw(encodeNumberFrame('started', { run }, pid))
  }

  /** In frames of at most 64 KiB. */
  output(run: number, bytes: Uint8Array, stream: 1 | 2 | 3 = 1): void {
    for (let at = 0; at < bytes.length; at += 65_536) this.send('output', { run, stream }, bytes.subarray(at, at + 65_536))
  }

  endOutput(run: number): void {
    this.send('output', { run, stream: 1 })
    this.send('output', { run, stream: 2 })
  }

  exited(run: number, kind = 0, code = 0): void {
    this.send('exited', { run }, numbers(kind, code, 1500, 0, 2500, 0, 4096, 0, 512, 0, 0, 1))
  }

  end(): void {
    this.#wire.end()
  }

  vanish(error?: Error): void {
    this.channel.destroy(error)
  }

  /** The next frame of this name that nobody asked for yet. */
  async hear(name: FrameName): Promise<HeardFrame> {
    for (;;) {
      const index = this.#heard.findIndex((frame) => frame.name === name)
      if (index >= 0) return this.#heard.splice(index, 1)[0] as HeardFrame
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** All frames of this name heard until now. */
  heard(name: FrameName): readonly HeardFrame[] {
    return this.#heard.filter((frame) => frame.name === name)
  }
}

export const request: StartRequest = { argv: ['true'], env: {}, cwd: '/', uid: 1000, gid: 1000, capabilities: 0n, rlimits: [], stdin: true }

export async function connected(): Promise<{ peer: ScriptedWarden; warden: Warden }> {
  const peer = new ScriptedWarden()
  const connecting = connectWarden(peer.channel, {})
  peer.hello()
  return { peer, warden: await connecting }
}

/** A run with id 1 that the scripted warden says is running. */
export async function running(options: Partial<StartRequest> = {}): Promise<{ peer: ScriptedWarden; warden: Warden; process: WardenProcess }> {
  const { peer, warden } = await connected()
  const starting = warden.start({ ...request, ...options })
  const { run } = await peer.hear('start')
  peer.started(run)
  const result = await starting
  if (!result.started) throw new Error(`not started: ${result.text}`)
  return { peer, warden, process: result.process }
}

/** Lets everything that is ready happen. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
