// A kernel over pipes, without an engine: frames on 3 and 4, and marks taken out of 1 and 2.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

export const python = '/usr/bin/python3'
const folder = join(import.meta.dirname, '../../../runtimes/python')

export interface Result {
  readonly isMain: boolean
  readonly data: Readonly<Record<string, unknown>>
  readonly cut: readonly string[]
}

export interface KernelError {
  readonly name: string
  readonly value: string
  readonly traceback: string
  readonly full: string
  readonly line?: number
  readonly column?: number
}

/** What one execution gave. `order` is how output and results followed each other. */
export interface Executed {
  readonly status: 'ok' | 'error' | 'exit'
  readonly number: number
  readonly code?: number
  readonly error?: KernelError
  readonly stdout: string
  readonly stderr: string
  readonly results: readonly Result[]
  readonly order: readonly string[]
}

export interface ExecuteOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly options?: Readonly<Record<string, string>>
  /** Answers to questions, one after the other; null is the end of input. */
  readonly answers?: readonly (string | null)[]
  /** Called instead of answering. */
  readonly onAsk?: () => void
  /** Called with everything printed so far, each time something came. */
  readonly onOutput?: (printed: string) => void
}

function loadPayload(): Buffer {
  const names = readdirSync(join(folder, 'glovebox_kernel')).filter((name) => name.endsWith('.py'))
  const modules = Object.fromEntries(names.map((name) => [`glovebox_kernel.${name.slice(0, -3)}`, readFileSync(join(folder, 'glovebox_kernel', name), 'utf8')]))
  return Buffer.from(JSON.stringify({ modules, main: 'glovebox_kernel.main' }))
}

type Frame = { readonly kind: string; readonly token: string; readonly payload: Record<string, unknown> }

/** One of the two streams of output, cut at the marks of the execution that runs. */
class Marked {
  bytes = Buffer.alloc(0)
  readonly pieces: Buffer[] = []
  onChange: () => void = () => {}

  constructor(readonly stream: Readable) {
    stream.on('data', (chunk: Buffer) => {
      this.bytes = Buffer.concat([this.bytes, chunk])
      this.onChange()
    })
  }

  /** Moves what stands before the mark into `pieces`; false when it has not come yet. */
  take(token: string, mark: number): boolean {
    const text = Buffer.from(`\x1e${token}:${mark}\x1e`)
    const at = this.bytes.indexOf(text)
    if (at < 0) return false
    this.pieces[mark] = this.bytes.subarray(0, at)
    this.bytes = this.bytes.subarray(at + text.length)
    return true
  }
}

export class Kernel {
  readonly frames: Frame[] = []
  private received = Buffer.alloc(0)
  private chunks: Buffer[] = []
  private needed = 0
  private wake: () => void = () => {}
  readonly ended: Promise<number | string>
  readonly out: Marked
  readonly error: Marked

  private constructor(readonly child: ChildProcess) {
    this.out = new Marked(child.stdout as Readable)
    this.error = new Marked(child.stderr as Readable)
    this.ended = once(child, 'close').then(([code, signal]) => code ?? signal)
    void this.ended.then(() => this.wake())
    for (const stream of [this.out, this.error]) stream.onChange = () => this.wake()
    ;(child.stdio[4] as Readable).on('data', (chunk: Buffer) => this.receive(chunk))
    ;(child.stdio[3] as Writable).on('error', () => {})
  }

  static async start(options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv; readonly startIn?: string } = {}): Promise<Kernel> {
    const bootstrap = readFileSync(join(folder, 'bootstrap.py'), 'utf8')
    const child = spawn(python, ['-u', '-c', bootstrap], {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
      env: options.env ?? { PATH: '/usr/bin:/bin', HOME: '/tmp', LANG: 'C.UTF-8' },
      ...(options.startIn && { cwd: options.startIn }),
      detached: true,
    })
    const kernel = new Kernel(child)
    kernel.send('load', '-', loadPayload())
    if (options.cwd) kernel.send('cwd', '-', Buffer.from(options.cwd))
    const ready = await kernel.next()
    if (ready.kind !== 'ready') throw new Error(`not ready: ${JSON.stringify(ready)}`)
    return kernel
  }

  send(kind: string, token: string, payload: Buffer): void {
    const pipe = this.child.stdio[3] as Writable
    pipe.write(`${kind} ${token} ${payload.length}\n`)
    pipe.write(payload)
  }

  private receive(chunk: Buffer): void {
    // Joined when a frame may be whole, rather than with every piece of it.
    this.chunks.push(chunk)
    this.needed -= chunk.length
    if (this.needed > 0) return
    this.received = Buffer.concat([this.received, ...this.chunks.splice(0)])
    for (;;) {
      const end = this.received.indexOf('\n')
      if (end < 0) break
      const [kind, token, length] = this.received.subarray(0, end).toString().split(' ') as [string, string, string]
      const whole = end + 1 + Number(length)
      this.needed = whole - this.received.length
      if (this.needed > 0) break
      this.frames.push({ kind, token, payload: JSON.parse(this.received.subarray(end + 1, whole).toString()) })
      this.received = this.received.subarray(whole)
    }
    this.wake()
  }

  private async until<T>(find: () => T | undefined): Promise<T> {
    let hasEnded = false
    void this.ended.then(() => {
      hasEnded = true
    })
    for (;;) {
      const found = find()
      if (found !== undefined) return found
      if (hasEnded) throw new Error(`the kernel has ended with ${await this.ended}: ${this.error.bytes}`)
      await new Promise<void>((resolve) => {
        this.wake = resolve
      })
    }
  }

  async next(): Promise<Frame> {
    return this.until(() => this.frames.shift())
  }

  interrupt(): void {
    process.kill(-(this.child.pid as number), 'SIGINT')
  }

  async execute(source: string | Buffer, options: ExecuteOptions = {}): Promise<Executed> {
    const token = randomBytes(16).toString('hex')
    for (const [name, value] of Object.entries(options.env ?? {})) this.send('env', token, Buffer.from(`${name}=${value}`))
    for (const [name, value] of Object.entries(options.options ?? {})) this.send('option', token, Buffer.from(`${name}=${value}`))
    if (options.answers || options.onAsk) this.send('option', token, Buffer.from('input=asked'))
    const streams = [this.out, this.error]
    for (const stream of streams) stream.pieces.length = 0
    this.watch(token, options.onOutput)
    this.send('execute', token, Buffer.from(source))
    const answers = [...(options.answers ?? [])]
    const results: Result[] = []
    const order: string[] = []
    for (;;) {
      const { kind, token: of, payload } = await this.next()
      if (of !== token) throw new Error(`a frame of another execution: ${kind}`)
      const mark = payload['mark'] as number
      for (const stream of streams) for (let one = stream.pieces.length; one <= mark; one++) await this.until(() => stream.take(token, one) || undefined)
      streams.forEach((stream, index) => {
        if (stream.pieces[mark]?.length) order.push(`${index === 0 ? 'stdout' : 'stderr'} ${stream.pieces[mark]}`)
      })
      if (kind === 'result') {
        results.push({ isMain: payload['main'] as boolean, data: payload['data'] as Record<string, unknown>, cut: payload['cut'] as string[] })
        order.push('result')
      } else if (kind === 'ask') {
        order.push(`${payload['secret'] ? 'secret' : 'ask'} ${payload['prompt']}`)
        const answer = answers.shift()
        if (options.onAsk) options.onAsk()
        else if (answer === null || answer === undefined) this.send('eof', token, Buffer.alloc(0))
        else this.send('input', token, Buffer.from(answer))
      } else {
        const [stdout, stderr] = streams.map((stream) => Buffer.concat(stream.pieces.slice(1)).toString()) as [string, string]
        this.watch(token, undefined)
        const { mark: _, ...done } = payload
        return { ...(done as unknown as Pick<Executed, 'status' | 'number' | 'code' | 'error'>), stdout, stderr, results, order }
      }
    }
  }

  private watch(token: string, onOutput: ((printed: string) => void) | undefined): void {
    for (const stream of [this.out, this.error]) {
      stream.onChange = () => {
        if (stream.bytes.includes(token) && onOutput) onOutput(stream.bytes.toString())
        this.wake()
      }
    }
  }

  async close(): Promise<number | string> {
    ;(this.child.stdio[3] as Writable).end()
    return this.ended
  }

  [Symbol.asyncDispose](): Promise<void> {
    try {
      process.kill(-(this.child.pid as number), 'SIGKILL')
    } catch {
      // It has ended already.
    }
    return this.ended.then(() => undefined)
  }
}
