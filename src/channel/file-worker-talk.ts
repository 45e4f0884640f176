/**
 * One worker and what is said to it: a request, and its replies up to the one DONE or ERROR that ends them.
 *
 * idle ──a request──▶ busy ──DONE or ERROR──▶ idle
 *                      └──left early, a reply that breaks the rules, the end of the worker──▶ over: it is killed and never used again
 */
import { SandboxError } from '../contract/errors.js'
import { pump, sendContent } from './file-worker-content.js'
import { brokenWorker, encodeEnd, type ReplyName } from './file-worker-frames.js'
import { FileWorkerReader } from './file-worker-reader.js'
import { type FileFailure, parseDone, parseFailure, type WorkerCount } from './file-worker-replies.js'
import type { WardenProcess } from './run.js'

export interface WorkerRun extends Pick<WardenProcess, 'output' | 'endInput' | 'kill' | 'discardOutput' | 'ref' | 'unref' | 'exited'> {
  /** Resolves when the memory of the bytes may be used again. */
  write(bytes: Uint8Array): Promise<unknown>
}

interface Reply {
  readonly name: ReplyName
  readonly payload: Uint8Array
}

export class FileWorkerTalk {
  readonly #run: WorkerRun
  readonly #reader: FileWorkerReader
  #state: 'idle' | 'busy' | 'over' = 'idle'

  constructor(run: WorkerRun) {
    this.#run = run
    this.#reader = new FileWorkerReader(run.output)
  }

  get isIdle(): boolean {
    return this.#state === 'idle'
  }

  async kill(): Promise<void> {
    this.#state = 'over'
    this.#run.discardOutput()
    // The channel's end is told to whoever waits for it; here it only means that there is nothing left to kill.
    await this.#run.kill().catch(() => undefined)
  }

  /** Every reply called `wanted`; returns what DONE says. */
  async *answers(request: Uint8Array, wanted: ReplyName): AsyncGenerator<Uint8Array, WorkerCount, undefined> {
    using turn = this.begin()
    await this.#run.write(request)
    for (;;) {
      const reply = await this.#next()
      if (reply.name === 'done') return turn.end(parseDone(reply.payload))
      this.judge(reply, wanted, turn)
      yield reply.payload
    }
  }

  /** The first reply to a request; what follows is the caller's, who ends the turn. */
  async first(request: Uint8Array, wanted: ReplyName, turn: Turn): Promise<Uint8Array> {
    await this.#run.write(request)
    const reply = await this.#next()
    this.judge(reply, wanted, turn)
    return reply.payload
  }

  async next(): Promise<Reply> {
    return await this.#next()
  }

  /** The bytes of all DATA that follow, as they come; returns what DONE says. */
  async *flow(turn: Turn, { most = Number.POSITIVE_INFINITY, isCounted = false }: FlowRules = {}): AsyncGenerator<Uint8Array, WorkerCount, undefined> {
    using _ = turn
    for (let sent = 0; ; ) {
      const { name, length } = await this.#reader.header()
      if (name !== 'data') {
        const reply = { name, payload: await this.#reader.whole(length) }
        this.judge(reply, 'done', turn)
        const done = parseDone(reply.payload)
        if (isCounted && done.count !== sent) throw brokenWorker(`sent ${sent} bytes and counted ${done.count}`)
        return turn.end(done)
      }
      sent += length
      if (sent > most) throw brokenWorker(`sent more than the ${most} bytes that were asked for`)
      for (let left = length; left > 0; ) {
        const piece = this.#reader.pieceNow(left) ?? (await this.#reader.piece(left))
        left -= piece.length
        yield piece
      }
    }
  }

  /** A request with content behind it; every reply called `wanted`, and what DONE says. */
  async feed(request: Uint8Array, content: AsyncIterable<Uint8Array>, wanted: ReplyName): Promise<{ replies: Uint8Array[]; done: WorkerCount }> {
    using turn = this.begin()
    await this.#run.write(request)
    const answer = this.#collect(wanted)
    await pump(content, answer, (piece) => sendContent(this.#run, piece))
    // An end must never follow content that was called off: the worker would take the part it got for the whole.
    if (this.#state === 'busy') await this.#run.write(encodeEnd())
    const { failure, ...answered } = await answer
    turn.end(answered.done)
    if (failure) throw failure
    return answered
  }

  /** Throws what an ERROR says, and for every other reply that is not the wanted one. */
  judge({ name, payload }: Reply, wanted: ReplyName, turn: Turn): void {
    if (name === wanted) return
    if (name === 'error') throw turn.end(parseFailure(payload))
    throw brokenWorker(`sent ${name} instead of ${wanted}`)
  }

  /** Whoever begins ends: a turn that is disposed before its end costs the worker. */
  begin(): Turn {
    if (this.#state === 'over') throw brokenWorker('is over')
    if (this.#state === 'busy') throw new SandboxError('conflict', 'the file worker does one thing at a time')
    this.#state = 'busy'
    this.#run.ref()
    let isOpen = true
    return {
      end: (result) => {
        isOpen = false
        // Nothing was asked for, so nothing may come.
        if (this.#reader.isAhead) {
          void this.kill()
          throw brokenWorker('went on after the end of its reply')
        }
        if (this.#state === 'busy') this.#rest()
        return result
      },
      [Symbol.dispose]: () => {
        if (isOpen) void this.kill()
        isOpen = false
      },
    }
  }

  /** Nobody waits for a worker without work, so this process may end before it. */
  #rest(): void {
    this.#state = 'idle'
    this.#run.unref()
  }

  async #collect(wanted: ReplyName): Promise<{ replies: Uint8Array[]; done: WorkerCount; failure?: FileFailure }> {
    const replies: Uint8Array[] = []
    for (;;) {
      const { name, payload } = await this.#next()
      if (name === 'done') return { replies, done: parseDone(payload) }
      if (name === 'error') return { replies, done: { count: 0, isIncomplete: false }, failure: parseFailure(payload) }
      if (name !== wanted || replies.length > 0) throw brokenWorker(`sent ${name} ${replies.length > 0 ? 'again' : `instead of ${wanted}`}`)
      replies.push(new Uint8Array(payload))
    }
  }

  async #next(): Promise<Reply> {
    const { name, length } = await this.#reader.header()
    return { name, payload: await this.#reader.whole(length) }
  }
}

interface FlowRules {
  /** Bytes that may come. */
  readonly most?: number | undefined
  /** DONE counts the bytes. */
  readonly isCounted?: boolean
}

export interface Turn extends Disposable {
  /** The worker is idle again; gives back what it was given. */
  end<Result>(result: Result): Result
}
