/** How requests of a client leave its process. */
import { SandboxError } from '../errors.js'
import type { LoopbackListener, LoopbackOrder } from '../ports.js'

export interface WireRequest {
  readonly method: string
  /** With what follows the `?`. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array | AsyncIterable<Uint8Array>
  /** Cuts the connection. */
  readonly signal?: AbortSignal
}

export interface WireResponse {
  readonly status: number
  header(name: string): string | undefined
  /** Read by one; not reading it holds the server back, leaving it cuts the connection. */
  readonly body: AsyncIterable<Uint8Array>
  /** Whether this process goes on for as long as the answer does, where that can be said. */
  ref?(): void
  unref?(): void
}

/** The bytes of a connection that was turned into a tunnel. */
export interface TunnelBytes {
  readonly input: AsyncIterable<Uint8Array>
  write(bytes: Uint8Array): Promise<void>
  destroy(): void
}

export interface Transport {
  /** Rejects when no answer comes, with SandboxError('unavailable'). */
  request(request: WireRequest): Promise<WireResponse>
  /** A connection that becomes another, or the answer that it does not; not given where there are none. */
  tunnel?(request: Omit<WireRequest, 'body'>): Promise<{ readonly bytes: TunnelBytes } | { readonly response: WireResponse }>
  /** Not given where this process can listen nowhere. */
  listen?(order: LoopbackOrder): Promise<LoopbackListener>
  close(): Promise<void>
}

export function unreachable(place: string, cause: unknown): SandboxError {
  return new SandboxError('unavailable', `the server at ${place} cannot be reached`, { cause, hint: 'glovebox serve' })
}
