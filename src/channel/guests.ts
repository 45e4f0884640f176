/** What programs inside want of the world, as the warden took it in: connections, and questions of DNS. */
import type { GuestConnection } from '../contract/egress.js'
import { SandboxError } from '../contract/errors.js'
import { encodeFrame, type Frame, maxDatagramBytes, maxListenedPorts } from './frames.js'
import type { Link } from './link.js'
import { type Accepted, parseAccepted } from './messages.js'
import { PortConnection } from './port-connection.js'

export type ConnectionTaker = (connection: GuestConnection) => void
export type QueryAnswerer = (query: Uint8Array) => Promise<Uint8Array | undefined>

/** The warden's own numbers begin here, and each is higher than the one before. */
const firstId = 2 ** 31
const maxConnections = 256
const maxQueries = 64
const maxPort = 65_535

export class Guests {
  readonly #link: Link
  #lastId = firstId - 1
  #connections = 0
  #queries = 0
  take: ConnectionTaker | undefined
  answer: QueryAnswerer | undefined

  constructor(link: Link) {
    this.#link = link
  }

  /** Throws SandboxError('broken') when the warden must not send this. */
  receive(frame: Frame): void {
    if (frame.run <= this.#lastId) throw new SandboxError('broken', `the warden sent ${frame.name} with number ${frame.run}, which is not its next`)
    this.#lastId = frame.run
    if (frame.name === 'query') this.#question(frame)
    else this.#accept(frame)
  }

  listen(ports: readonly number[]): void {
    const distinct = [...new Set(ports)]
    const wrong = distinct.find((port) => !Number.isInteger(port) || port < 1 || port > maxPort)
    if (wrong !== undefined) throw new SandboxError('invalid', `port ${wrong} is not between 1 and ${maxPort}`)
    if (distinct.length > maxListenedPorts)
      throw new SandboxError('invalid', `${distinct.length} ports are more than the ${maxListenedPorts} that can be listened at`)
    const payload = Buffer.allocUnsafe(distinct.length * 2)
    distinct.forEach((port, index) => payload.writeUInt16LE(port, index * 2))
    this.#link.outbox.send(encodeFrame('listen', {}, payload))
  }

  #accept({ run, payload }: Frame): void {
    const accepted = parseAccepted(payload)
    if (this.#connections === maxConnections) throw new SandboxError('broken', `the warden took in more than ${maxConnections} connections at a time`)
    this.#connections += 1
    const onOver = (): void => {
      this.#connections -= 1
    }
    const connection = new AcceptedConnection({ id: run, accepted, link: this.#link, onOver })
    if (this.take) this.take(connection)
    else void connection.destroy().catch(() => {})
  }

  #question({ run, payload }: Frame): void {
    if (this.#queries === maxQueries) throw new SandboxError('broken', `the warden asked more than ${maxQueries} questions at a time`)
    this.#queries += 1
    // What it asks is a view that is good only now.
    void this.#reply(run, Buffer.from(payload))
  }

  /** Each question is answered, if only by nothing: until then it takes one of few places. */
  async #reply(run: number, query: Uint8Array): Promise<void> {
    const answer = await this.answer?.(query).catch(() => undefined)
    this.#queries -= 1
    this.#link.outbox.send(encodeFrame('answer', { run }, answer && answer.length <= maxDatagramBytes ? answer : undefined))
  }
}

interface AcceptedOptions {
  readonly id: number
  readonly accepted: Accepted
  readonly link: Link
  readonly onOver: () => void
}

class AcceptedConnection extends PortConnection implements GuestConnection {
  readonly door: GuestConnection['door']
  readonly address: string
  readonly port: number

  constructor({ id, accepted, link, onOver }: AcceptedOptions) {
    super({ id, port: accepted.port, link, window: accepted.window, isOpen: true, onOver })
    this.door = accepted.door
    this.address = accepted.address
    this.port = accepted.port
  }
}
