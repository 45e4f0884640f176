import * as z from 'zod'
import type { CallOptions } from './platform.js'
import { durationSchema } from './quantities.js'

export const portSchema = z.number().int().min(1).max(65_535)
export const portWaitSchema = durationSchema({ min: 0, max: 86_400_000, example: '30s' }).default(30_000)

export interface ForwardOptions extends CallOptions {
  /** The port on the host's loopback; a free one when not given. */
  readonly port?: number
  /** How long to wait until something listens in the cell; 30 s when not given, 0 not at all. */
  readonly waitFor?: number | string
}

/** One connection to the host's loopback, as far as carrying it on needs it. */
export interface LoopbackConnection {
  /** Ends when the other side has ended its direction; throws when it broke off. Read by one. */
  readonly input: AsyncIterable<Uint8Array>
  /** Resolves when there is room for more; rejects when the other side is gone. */
  write(bytes: Uint8Array): Promise<void>
  /** This direction only. */
  end(): Promise<void>
  /** Both at once; the other side is told that it broke off. */
  destroy(): void
  readonly closed: Promise<void>
}

export interface LoopbackListener {
  readonly port: number
  /** With all its connections. */
  close(): Promise<void>
}

export interface LoopbackOrder {
  /** A free one when not given. */
  readonly port: number | undefined
  readonly mostConnections: number
  onConnection(connection: LoopbackConnection): void
}

/** One connection to a port of a cell's loopback. */
export interface PortConnection {
  /** What comes out of the cell, until its end. Read by one; not reading it holds the other side back. Throws when the connection broke off. */
  readonly output: AsyncIterable<Uint8Array>
  /** Resolves when there is room for more; rejects when the connection broke off. */
  write(bytes: Uint8Array): Promise<void>
  /** Of this direction. */
  end(): Promise<void>
  /** Resolves when both directions have ended, or after `destroy`; rejects when the connection broke off. */
  readonly closed: Promise<void>
  /** Both directions at once. Idempotent. */
  destroy(): Promise<void>
}

export interface PortUrlOptions extends CallOptions {
  /** An hour when not given. */
  readonly expires?: number | string
}

/** A listener on the host's loopback that leads to a port of the cell's loopback. While it is open it keeps its process alive. */
export interface Forward extends AsyncDisposable {
  readonly host: '127.0.0.1'
  readonly port: number
  /** The port in the cell. */
  readonly target: number
  readonly url: string
  /** With its open connections. Idempotent. */
  close(): Promise<void>
}

export interface PlatformPorts {
  /** Closed with the sandbox. */
  forward(id: string, port: number, options?: ForwardOptions): Promise<Forward>
  /** Resolves when something listens on the port in the cell. Throws SandboxError('not-found') when nothing does in time. */
  waitFor(id: string, port: number, options?: CallOptions & { readonly timeout?: number | string }): Promise<void>
  /** To what listens there now. Throws SandboxError('not-found') when nothing does. */
  connect(id: string, port: number, options?: CallOptions): Promise<PortConnection>
  /** An address that needs no key until it expires; only of platforms that are reached over HTTP. */
  url?(id: string, port: number, options?: PortUrlOptions): Promise<string>
}
