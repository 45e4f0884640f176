import { createHash } from 'node:crypto'
import type { Readable, Writable } from 'node:stream'
import type { FilterReading } from './newest-filter.js'

/** To a process of the launcher's, which reads one filter and is then gone. */
export type InspectorPipe = Readable & Writable & { ref?(): unknown; unref?(): unknown }

const found = 'F'.charCodeAt(0)

/** The pipe keeps this process alive only while its answer, or its end, is waited for. */
export class FilterPipe {
  readonly #pipe: InspectorPipe
  readonly #closed: Promise<void>
  readonly #timeoutMs: number

  constructor(pipe: InspectorPipe, timeoutMs: number) {
    this.#pipe = pipe
    this.#timeoutMs = timeoutMs
    // A launcher that failed at once may be gone by now, and that is told only once.
    this.#closed = pipe.closed ? Promise.resolve() : new Promise((resolve) => void pipe.once('close', resolve))
    // An answer that does not come is told by the end of the pipe.
    pipe.on('error', () => undefined)
    pipe.unref?.()
  }

  /** Once. */
  async read(pid: number): Promise<FilterReading> {
    const chunks: Buffer[] = []
    this.#pipe.on('data', (chunk: Buffer) => chunks.push(chunk))
    const late = setTimeout(() => this.#pipe.destroy(), this.#timeoutMs)
    // A line of its own, because the end of a pipe is told only after whatever else is to be done now.
    await this.#end(`${pid}\n`)
    clearTimeout(late)
    const answer = Buffer.concat(chunks)
    if (answer[0] !== found) return { unreadable: answer.toString('utf8', 1) || 'the launcher told no filter' }
    return { hash: answer.length === 1 ? null : createHash('sha256').update(answer.subarray(1)).digest('hex') }
  }

  /** Resolves when whoever is at the other end is gone. */
  async close(): Promise<void> {
    this.#pipe.resume()
    await this.#end('')
  }

  async #end(words: string): Promise<void> {
    this.#pipe.ref?.()
    if (!this.#pipe.writableEnded) this.#pipe.end(words)
    await this.#closed
  }
}
