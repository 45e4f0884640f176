/**
 * Our launcher in a container on another machine, beside the cell and outside of it, that reads for us what the kernel there says. It is started by the engine, and its
 * words come by way of the engine.
 */
import { getSystemErrorMap } from 'node:util'
import { SandboxError } from '../../contract/errors.js'
import { type AttachedStreams, attachedStreams } from '../../sys/docker/attach.js'
import type { EngineClient } from '../../sys/docker/client.js'
import { inContainer } from './image.js'

export interface Teller {
  read(path: string): Promise<string>
  link(path: string): Promise<string>
  list(path: string): Promise<readonly string[]>
  /** `f` or `d` and what tells it from all others; undefined where there is nothing. */
  identity(path: string): Promise<string | undefined>
  close(): void
}

interface Waiting {
  readonly path: string
  readonly resolve: (bytes: Buffer) => void
  readonly reject: (error: Error) => void
}

const patienceMs = 20_000
/** Nothing of the kernel's that is asked for is longer. */
const mostBytes = 2 ** 20
/** A sign and seven digits; without a newline by then it is none. */
const mostHeadBytes = 9

export async function startTeller(engine: EngineClient, containerId: string): Promise<Teller> {
  const body = { AttachStdin: true, AttachStdout: true, AttachStderr: true, Tty: false, Cmd: [inContainer.launcher, '--tell'] }
  const { Id } = (await engine.call('POST', `/containers/${containerId}/exec`, { body })) as { readonly Id?: unknown }
  if (typeof Id !== 'string' || !/^[0-9a-f]{12,64}$/.test(Id)) throw new SandboxError('broken', 'the container engine made a process without an id')
  const streams = attachedStreams(await engine.hijack(`/exec/${Id}/start`, { body: { Detach: false, Tty: false } }))
  return new ContainerTeller(streams)
}

class ContainerTeller implements Teller {
  readonly #streams: AttachedStreams
  #waiting: Waiting[] = []
  #arrived = Buffer.alloc(0)
  #timer: NodeJS.Timeout | undefined
  #over: Error | undefined

  constructor(streams: AttachedStreams) {
    this.#streams = streams
    const { stdin, stdout, stderr } = streams
    let said = ''
    stderr.on('error', () => undefined).on('data', (bytes: Buffer) => (said = `${said}${bytes.toString('utf8')}`.slice(-400)))
    stdout.on('data', (bytes: Buffer) => this.#take(bytes))
    stdout.on('end', () => this.#end(said.trim() || 'it ended'))
    for (const stream of [stdin, stdout]) stream.on('error', (error) => this.#end(error.message))
    stdin.unref()
  }

  async read(path: string): Promise<string> {
    return (await this.#ask('r', path)).toString('utf8')
  }

  async link(path: string): Promise<string> {
    return (await this.#ask('l', path)).toString('utf8')
  }

  async list(path: string): Promise<readonly string[]> {
    return (await this.#ask('d', path)).toString('utf8').split('\n').filter(Boolean)
  }

  async identity(path: string): Promise<string | undefined> {
    try {
      return (await this.#ask('s', path)).toString('utf8')
    } catch (error) {
      if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
      throw error
    }
  }

  close(): void {
    this.#end('it is not needed any more')
    this.#streams.stdin.destroy()
  }

  #ask(kind: string, path: string): Promise<Buffer> {
    if (this.#over) return Promise.reject(this.#over)
    return new Promise<Buffer>((resolve, reject) => {
      this.#waiting.push({ path, resolve, reject })
      this.#wind()
      this.#streams.stdin.write(`${kind} ${path}\n`)
    })
  }

  /** For the first of those who wait. */
  #wind(): void {
    clearTimeout(this.#timer)
    if (this.#waiting.length === 0) {
      this.#streams.stdin.unref()
      return
    }
    this.#streams.stdin.ref()
    this.#timer = setTimeout(() => this.#end(`it gave no answer within ${patienceMs} ms`), patienceMs)
  }

  #take(bytes: Buffer): void {
    if (this.#over) return
    this.#arrived = Buffer.concat([this.#arrived, bytes])
    for (let taken = this.#takeOne(); taken; taken = this.#takeOne()) this.#wind()
  }

  #takeOne(): boolean {
    const line = this.#arrived.indexOf(0x0a)
    if (line === -1 && this.#arrived.length < mostHeadBytes) return false
    const head = this.#arrived.toString('latin1', 0, line === -1 ? mostHeadBytes : line)
    const number = Number(head.slice(1))
    const [next] = this.#waiting
    if (!/^[+-]\d{1,7}$/.test(head) || number > mostBytes || next === undefined) {
      this.#end('it said something that nobody asked for')
      return false
    }
    const end = line + 1 + (head.startsWith('+') ? number : 0)
    if (this.#arrived.length < end) return false
    const told = Buffer.from(this.#arrived.subarray(line + 1, end))
    this.#arrived = this.#arrived.subarray(end)
    this.#waiting.shift()
    if (head.startsWith('+')) next.resolve(told)
    else next.reject(refusal(next.path, number))
    return true
  }

  #end(why: string): void {
    clearTimeout(this.#timer)
    this.#over ??= new SandboxError('broken', `what reads in the container on the engine’s machine is gone: ${why}`, { hint: 'glovebox doctor' })
    for (const { reject } of this.#waiting.splice(0)) reject(this.#over)
  }
}

/** As the kernel of this machine would have said it. */
function refusal(path: string, number: number): Error {
  const code = getSystemErrorMap().get(-number)?.[0] ?? `errno ${number}`
  return Object.assign(new Error(`${code}: ${path}`), { code })
}
