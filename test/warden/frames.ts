import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

/** The built program, or a sanitizer build of it named by the environment. */
export const WARDEN = process.env.WARDEN_UNDER_TEST ?? join(import.meta.dirname, '../../dist/native', `linux-${process.arch}`, 'warden')
export const WINDOW = 2097152

export const TYPE = {
  HELLO: 0x01,
  CONFIGURE: 0x02,
  RULES: 0x03,
  START: 0x10,
  STDIN: 0x11,
  SIGNAL: 0x12,
  KILL: 0x13,
  CREDIT: 0x14,
  CLOSE: 0x15,
  RELEASE: 0x16,
  RESIZE: 0x17,
  CONNECT: 0x18,
  LISTEN: 0x19,
  ANSWER: 0x1a,
  GATED: 0x1f,
  STARTED: 0x20,
  FAILED: 0x21,
  OUTPUT: 0x22,
  EXITED: 0x23,
  GONE: 0x24,
  CONNECTED: 0x25,
  CLOSED: 0x26,
  ACCEPTED: 0x27,
  QUERY: 0x28,
  FATAL: 0x7f,
} as const

export interface Frame {
  readonly type: number
  readonly stream: number
  readonly run: number
  readonly payload: Buffer
}

export interface Start {
  readonly argv: readonly string[]
  readonly env?: readonly string[]
  readonly cwd?: string
  readonly uid?: number
  readonly gid?: number
  readonly capabilities?: bigint
  readonly rlimits?: readonly (readonly [resource: number, soft: bigint, hard: bigint])[]
  readonly stdin?: boolean
  readonly gate?: boolean
  /** Folder, arguments and environment come with its release; `argv` is empty. */
  readonly later?: boolean
  readonly terminal?: { readonly rows: number; readonly cols: number }
  readonly worker?: boolean
  readonly layers?: boolean
  /** What it is fed is its descriptor 3, and its descriptor 4 is stream 3. */
  readonly aside?: boolean
  readonly group?: string
  /** In a liner with a disk of this size; `forked` by the zygote. */
  readonly liner?: { readonly bytes: bigint; readonly inodes: bigint; readonly forked?: boolean }
  /** It is the zygote, and this is its library. */
  readonly zygote?: Buffer
}

export const u32 = (...values: number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [index, value] of values.entries()) bytes.writeUInt32LE(value >>> 0, index * 4)
  return bytes
}

export const u64 = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(value)
  return bytes
}

export const str = (text: string | Buffer): Buffer => Buffer.concat([u32(Buffer.byteLength(text)), Buffer.from(text)])

export function encode(frame: { type: number; stream?: number; run?: number; payload?: Uint8Array; reserved?: number; length?: number }): Buffer {
  const payload = frame.payload ?? new Uint8Array()
  const header = Buffer.alloc(12)
  header.writeUInt32LE(frame.length ?? payload.length, 0)
  header.writeUInt8(frame.type, 4)
  header.writeUInt8(frame.stream ?? 0, 5)
  header.writeUInt16LE(frame.reserved ?? 0, 6)
  header.writeUInt32LE(frame.run ?? 0, 8)
  return Buffer.concat([header, payload])
}

/** A terminal, a worker and what has an aside are always fed. */
const flagsOf = ({ stdin, gate, terminal, worker, layers, later, aside, liner, zygote }: Start): number =>
  (stdin || terminal || worker || aside ? 1 : 0) |
  (gate || later ? 2 : 0) |
  (terminal ? 4 : 0) |
  (worker ? 8 : 0) |
  (layers ? 16 : 0) |
  (later ? 32 : 0) |
  (aside ? 64 : 0) |
  (liner ? 128 : 0) |
  (liner?.forked ? 256 : 0) |
  (zygote ? 512 : 0)

/** As START and RESIZE have it. */
export const sizeOf = ({ rows, cols }: { readonly rows: number; readonly cols: number }): Buffer => u32(rows | (cols << 16))

/** As RELEASE has it for a program that was not told before. */
export function toldPayload({ cwd = '/', argv, env = ['PATH=/usr/bin:/bin'] }: Pick<Start, 'cwd' | 'argv' | 'env'>): Buffer {
  return Buffer.concat([str(cwd), u32(argv.length), ...argv.map(str), u32(env.length), ...env.map(str)])
}

export function startPayload(start: Start): Buffer {
  const rlimits = start.rlimits ?? []
  const told = start.later ? { cwd: start.cwd ?? '', argv: start.argv, env: start.env ?? [] } : start
  return Buffer.concat([
    u32(flagsOf(start), start.uid ?? process.getuid?.() ?? 0, start.gid ?? process.getgid?.() ?? 0),
    u64(start.capabilities ?? 0n),
    u32(rlimits.length),
    ...rlimits.flatMap(([resource, soft, hard]) => [u32(resource), u64(soft), u64(hard)]),
    toldPayload(told),
    str(start.group ?? ''),
    ...(start.terminal ? [sizeOf(start.terminal)] : []),
    ...(start.liner ? [u64(start.liner.bytes), u64(start.liner.inodes)] : []),
    ...(start.zygote ? [u32(start.zygote.length), start.zygote] : []),
  ])
}

export interface Ending {
  readonly kind: number
  readonly code: number
  readonly userUs: bigint
  readonly systemUs: bigint
  readonly peakBytes: bigint
  readonly readBytes: bigint
  readonly writtenBytes: bigint
}

export const endingOf = (frame: Frame): Ending => ({
  kind: frame.payload.readUInt32LE(0),
  code: frame.payload.readUInt32LE(4),
  userUs: frame.payload.readBigUInt64LE(8),
  systemUs: frame.payload.readBigUInt64LE(16),
  peakBytes: frame.payload.readBigUInt64LE(24),
  readBytes: frame.payload.readBigUInt64LE(32),
  writtenBytes: frame.payload.readBigUInt64LE(40),
})

/** What is refused (each by its number) and with which action of seccomp; all else is allowed. */
export function filterOf(refusals: readonly (readonly [number: number, action: number])[]): Buffer {
  const instruction = (code: number, jumpIfNot: number, k: number) => Buffer.concat([Buffer.from([code, 0, 0, jumpIfNot]), u32(k)])
  return Buffer.concat([
    instruction(0x20, 0, 0),
    ...refusals.flatMap(([number, action]) => [instruction(0x15, 1, number), instruction(0x06, 0, action)]),
    instruction(0x06, 0, 0x7fff0000),
  ])
}

/** The payload of RULES. */
export function rulesPayload(rules: readonly (readonly [access: number, path: string])[]): Buffer {
  return Buffer.concat([u32(rules.length), ...rules.flatMap(([access, path]) => [u32(access), str(path)])])
}

/** A warden and the far end of its channel. Frames are kept in order until a test takes them. */
export class Peer implements AsyncDisposable {
  readonly child: ChildProcess
  readonly frames: Frame[] = []
  stderr = ''
  readonly exited: Promise<number | null>
  #input = Buffer.alloc(0)
  #sleepers: (() => void)[] = []
  #over = false

  constructor(
    command: readonly string[] = [WARDEN, '--subreaper'],
    options: { readonly uid?: number; readonly gid?: number; readonly extra?: readonly ('pipe' | number)[] } = {},
  ) {
    if (!existsSync(WARDEN)) throw new Error(`${WARDEN} is missing: node scripts/build-native.mjs`)
    const [file = WARDEN, ...args] = command
    const { extra = [], ...ids } = options
    this.child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe', ...extra], ...ids })
    const stdout = this.child.stdout as Readable
    stdout.on('data', (chunk: Buffer) => this.#take(chunk))
    this.child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()))
    this.stdin.on('error', () => {})
    this.exited = new Promise((resolve) => {
      this.child.on('close', (code) => {
        this.#over = true
        this.#wake()
        resolve(code)
      })
    })
  }

  get stdin(): Writable {
    return this.child.stdin as Writable
  }

  get stdout(): Readable {
    return this.child.stdout as Readable
  }

  #wake(): void {
    for (const sleeper of this.#sleepers.splice(0)) sleeper()
  }

  #take(chunk: Buffer): void {
    this.#input = Buffer.concat([this.#input, chunk])
    for (;;) {
      if (this.#input.length < 12) break
      const length = this.#input.readUInt32LE(0)
      if (this.#input.length < 12 + length) break
      const payload = Buffer.from(this.#input.subarray(12, 12 + length))
      this.frames.push({ type: this.#input.readUInt8(4), stream: this.#input.readUInt8(5), run: this.#input.readUInt32LE(8), payload })
      this.#input = this.#input.subarray(12 + length)
    }
    this.#wake()
  }

  send(frame: Parameters<typeof encode>[0]): boolean {
    return this.stdin.write(encode(frame))
  }

  start(run: number, start: Start): void {
    this.send({ type: TYPE.START, run, payload: startPayload(start) })
  }

  /** The first frame that fits, removed; rejects when the warden ends without one. */
  async take(fits: (frame: Frame) => boolean): Promise<Frame> {
    for (;;) {
      const index = this.frames.findIndex(fits)
      if (index >= 0) return this.frames.splice(index, 1)[0] as Frame
      if (this.#over) throw new Error(`the warden ended: ${this.stderr}; left: ${JSON.stringify(this.frames.slice(0, 5))}`)
      await new Promise<void>((resolve) => this.#sleepers.push(resolve))
    }
  }

  takeType(type: number, run = 0): Promise<Frame> {
    return this.take((frame) => frame.type === type && frame.run === run)
  }

  /** Everything a run says until it is over, crediting each byte as it comes. */
  async collect(run: number): Promise<{ stdout: Buffer; stderr: Buffer; aside: Buffer; ending: Ending }> {
    const parts: [Buffer[], Buffer[], Buffer[]] = [[], [], []]
    for (;;) {
      const frame = await this.take((each) => each.run === run && (each.type === TYPE.OUTPUT || each.type === TYPE.EXITED || each.type === TYPE.FAILED))
      if (frame.type === TYPE.FAILED) throw new Error(`not started: ${frame.payload.subarray(8).toString()} (${frame.payload.readUInt32LE(4)})`)
      if (frame.type === TYPE.EXITED) {
        const [stdout, stderr, aside] = parts.map((each) => Buffer.concat(each)) as [Buffer, Buffer, Buffer]
        return { stdout, stderr, aside, ending: endingOf(frame) }
      }
      parts[(frame.stream - 1) as 0 | 1 | 2].push(frame.payload)
      if (frame.payload.length > 0) this.send({ type: TYPE.CREDIT, run, stream: frame.stream, payload: u32(frame.payload.length) })
    }
  }

  /** START and everything it says. */
  async run(run: number, start: Start): ReturnType<Peer['collect']> {
    this.start(run, start)
    return this.collect(run)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stdin.end()
    await this.exited
  }
}
