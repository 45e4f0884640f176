// A kernel over pipes, without an engine: frames on 3 and 4, and marks taken out of 1 and 2.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
// @ts-expect-error a script of the build, which has no declarations
import { makeRuntimes } from '../../scripts/runtimes.mjs'
import { MarkedStreams } from './marked-streams.js'

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
  readonly language?: string
  readonly env?: Readonly<Record<string, string>>
  readonly options?: Readonly<Record<string, string>>
  /** Answers to questions, one after the other; null is the end of input. */
  readonly answers?: readonly (string | null)[]
  /** Called with everything that was printed so far, each time something came. */
  readonly onOutput?: (printed: string) => void
}

interface Frame {
  readonly kind: string
  readonly token: string
  readonly payload: Record<string, unknown>
}

interface Index {
  readonly kernels: Readonly<Record<string, { interpreters: string[]; argv: string[]; env: Record<string, string>; load: string }>>
  readonly languages: Readonly<Record<string, { kernel: string; options?: string[]; load?: string }>>
}

export interface StartOptions {
  readonly cwd?: string
  readonly env?: NodeJS.ProcessEnv
}

const made = new Map<string, Promise<Map<string, string>>>()

function runtimesOf(name: string): Promise<Map<string, string>> {
  const known = made.get(name) ?? (makeRuntimes({ only: [name] }) as Promise<Map<string, string>>)
  made.set(name, known)
  return known
}

export class Kernel {
  readonly #frames: Frame[] = []
  readonly #files: Map<string, string>
  readonly #index: Index
  readonly #loaded = new Set<string>()
  readonly #streams: MarkedStreams
  #received = Buffer.alloc(0)
  #wake: () => void = () => {}
  #hasEnded = false
  readonly child: ChildProcess
  readonly ended: Promise<number | string>

  private constructor(child: ChildProcess, files: Map<string, string>) {
    this.child = child
    this.#files = files
    this.#index = JSON.parse(files.get('index.json') ?? '') as Index
    this.#streams = new MarkedStreams(child.stdout as Readable, child.stderr as Readable, () => this.#wake())
    this.ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string)
    void this.ended.then(() => {
      this.#hasEnded = true
      this.#wake()
    })
    ;(child.stdio[4] as Readable).on('data', (chunk: Buffer) => this.#receive(chunk))
    ;(child.stdio[3] as Writable).on('error', () => {})
  }

  static async start(name: 'node' | 'python' | 'shell', { cwd, env }: StartOptions = {}): Promise<Kernel> {
    const files = await runtimesOf(name)
    const {
      interpreters,
      argv,
      env: own,
      load,
    } = (JSON.parse(files.get('index.json') ?? '') as Index).kernels[name] ?? { interpreters: [], argv: [], env: {}, load: '' }
    const program = name === 'node' ? process.execPath : (interpreters[0] ?? '')
    const child = spawn(program, argv, {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
      env: { ...(env ?? { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/tmp', LANG: 'C.UTF-8' }), ...own },
      detached: true,
    })
    const kernel = new Kernel(child, files)
    kernel.send('load', '-', Buffer.from(files.get(load) ?? ''))
    if (cwd !== undefined) kernel.send('cwd', '-', Buffer.from(cwd))
    const ready = await kernel.next()
    if (ready.kind !== 'ready') throw new Error(`not ready: ${JSON.stringify(ready)}`)
    return kernel
  }

  send(kind: string, token: string, payload: Buffer): void {
    const pipe = this.child.stdio[3] as Writable
    pipe.write(`${kind} ${token} ${payload.length}\n`)
    pipe.write(payload)
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk])
    for (;;) {
      const end = this.#received.indexOf('\n')
      if (end < 0) break
      const [, kind = '', token = '', length = ''] = /^([a-z]+) ([0-9a-f]{32}|-) (\d+)$/.exec(this.#received.subarray(0, end).toString()) ?? []
      if (kind === '') throw new Error(`no frame: ${this.#received.subarray(0, 100)}`)
      const whole = end + 1 + Number(length)
      if (this.#received.length < whole) break
      this.#frames.push({ kind, token, payload: JSON.parse(this.#received.subarray(end + 1, whole).toString()) })
      this.#received = this.#received.subarray(whole)
    }
    this.#wake()
  }

  async until<T>(find: () => T | undefined): Promise<T> {
    for (;;) {
      const found = find()
      if (found !== undefined) return found
      if (this.#hasEnded) throw new Error(`the kernel has ended with ${await this.ended}: ${this.#streams.rest}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  next(): Promise<Frame> {
    return this.until(() => this.#frames.shift())
  }

  interrupt(): void {
    process.kill(-(this.child.pid as number), 'SIGINT')
  }

  /** Sends everything up to `execute`. */
  #begin(token: string, source: string | Buffer, { language, env = {}, options = {}, answers }: ExecuteOptions): void {
    const spoken = language === undefined ? undefined : this.#index.languages[language]
    if (spoken?.load !== undefined && !this.#loaded.has(spoken.load)) {
      this.#loaded.add(spoken.load)
      this.send('load', '-', Buffer.from(this.#files.get(spoken.load) ?? ''))
    }
    for (const [name, value] of Object.entries(env)) this.send('env', token, Buffer.from(`${name}=${value}`))
    for (const option of spoken?.options ?? []) this.send('option', token, Buffer.from(option))
    for (const [name, value] of Object.entries(options)) this.send('option', token, Buffer.from(`${name}=${value}`))
    if (answers) this.send('option', token, Buffer.from('input=asked'))
    this.send('execute', token, Buffer.from(source))
  }

  async execute(source: string | Buffer, options: ExecuteOptions = {}): Promise<Executed> {
    const token = randomBytes(16).toString('hex')
    this.#streams.begin(token, options.onOutput)
    this.#begin(token, source, options)
    const answers = [...(options.answers ?? [])]
    const results: Result[] = []
    for (;;) {
      const { kind, token: of, payload } = await this.next()
      if (of !== token) throw new Error(`a frame of another execution: ${kind}`)
      await this.until(() => this.#streams.reached(payload['mark'] as number) || undefined)
      if (kind === 'result') {
        results.push({ isMain: payload['main'] as boolean, data: payload['data'] as Record<string, unknown>, cut: payload['cut'] as string[] })
        this.#streams.note('result')
      } else if (kind === 'ask') {
        this.#streams.note(`${payload['secret'] === true ? 'secret' : 'ask'} ${String(payload['prompt'])}`)
        const answer = answers.shift() ?? null
        this.send(answer === null ? 'eof' : 'input', token, Buffer.from(answer ?? ''))
      } else {
        const { mark: _, ...done } = payload
        return { ...(done as unknown as Pick<Executed, 'status' | 'number' | 'code' | 'error'>), ...this.#streams.end(), results }
      }
    }
  }

  /** The text of the main result, or of whatever else the execution came to. */
  async text(source: string, options: ExecuteOptions = {}): Promise<unknown> {
    const { status, results, error, code } = await this.execute(source, options)
    if (status === 'ok') return results.find(({ isMain }) => isMain)?.data['text/plain']
    return status === 'exit' ? `exit ${code}` : `${error?.name}: ${error?.value}`
  }

  async close(): Promise<number | string> {
    ;(this.child.stdio[3] as Writable).end()
    return this.ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      process.kill(-(this.child.pid as number), 'SIGKILL')
    } catch {
      // It has ended already.
    }
    await this.ended
  }
}
