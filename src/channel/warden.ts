/** What the engine asks of the warden of a cell. */
import type { SandboxError } from '../contract/errors.js'
import type { ConnectionTaker, QueryAnswerer } from './guests.js'
import type { WardenConnection } from './port-connection.js'
import type { StartResult } from './run.js'
import type { ReadyRequest, StartRequest } from './start-payload.js'
import type { GatedOptions, ReadyProgram, StartOptions } from './starting.js'

export interface Warden {
  /** Throws SandboxError('invalid') when the request does not fit the protocol; a program that cannot be started is a result. */
  start(request: StartRequest, options?: StartOptions): Promise<StartResult>
  /**
   * Makes a program ready before anyone knows what it is to become. As `atGate` of a start, `atGate` looks at it and decides; undefined when it did not come
   * about, which is no loss. When `giveUp` aborts before it is ready it is killed: another of its id may have stopped it on its way. It dies with the channel.
   * Neither it nor its coming about keeps this process alive: see `hold`.
   */
  prepare(request: ReadyRequest, options: GatedOptions): Promise<ReadyProgram | undefined>
  /**
   * To a port of the cell's loopback. Rejects with SandboxError: 'invalid' for no port, 'not-found' when nothing listens there, 'busy' when what
   * listens takes nobody in for ten seconds, or when no more connections can be had.
   */
  connect(port: number): Promise<WardenConnection>
  /**
   * Who is handed each connection that a program makes to one of the warden's doors, from now on; until then they are ended at once. One that is open does not
   * keep this process alive by itself. What is handed over must be read and ended, or destroyed: there is room for 256 at a time.
   */
  onConnection(take: ConnectionTaker): void
  /** Who answers DNS, from now on; until then nobody. At most 64 questions wait at a time. An answer beyond 4,096 bytes is none. */
  onQuery(answer: QueryAnswerer): void
  /**
   * The ports at which direct connections are taken in, instead of those before; only in a cell that was opened so. Liners that were made before keep theirs. Throws
   * SandboxError('invalid') for what is no port, and for more than 64.
   */
  listen(ports: readonly number[]): void
  /** This process stays alive, as long as the channel does, until the answer is called. */
  hold(): () => void
  /** Settles when the channel is over: undefined after close(), else why. */
  readonly ended: Promise<SandboxError | undefined>
  /** Ends the cell. Whoever still waits for something of it gets SandboxError('closed'). Idempotent. */
  close(): void
}
