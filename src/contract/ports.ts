import type { CallOptions } from './platform.js'

export interface ForwardOptions extends CallOptions {
  /** The port on the host's loopback; a free one when not given. */
  readonly port?: number
  /** How long to wait until something listens in the cell; 30 s when not given, 0 not at all. */
  readonly waitFor?: number | string
}

/** A listener on the host's loopback that leads to a port of the cell's loopback. */
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
}
