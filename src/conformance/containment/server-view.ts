import type { Purpose } from './containment.js'

/** One tenant of the server that is attacked, with a key and a sandbox of its own. */
export interface TenantView {
  readonly name: string
  readonly key: string
  readonly sandbox: string
}

export interface ServerRequest {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Whose key goes with it; none when not given. */
  readonly key?: string
}

export interface ServerAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A real server of this installation, with two tenants, and the ways in which somebody may talk to it. */
export interface ServerView {
  readonly first: TenantView
  readonly second: TenantView
  /** A key of the first tenant's that only reads, one that was revoked, and one that has expired. */
  readonly keys: { readonly reading: string; readonly revoked: string; readonly expired: string }
  request(request: ServerRequest): Promise<ServerAnswer>
  /** These very bytes; what comes back until the other side ends, or a while after the last of it. */
  raw(bytes: string): Promise<string>
  /** Where it listens, as the kernel tells. */
  addresses(): Promise<readonly string[]>
  /** Mode and owner of a socket that a server listens on instead. */
  socket(): Promise<{ readonly mode: number; readonly isOwn: boolean; readonly path: string }>
  /** What a server says that is told to listen for everyone. */
  expose(): Promise<string>
  /** What it has written to its log so far. */
  log(): string
}

/** Asked of a server once, whatever driver is below it. */
export interface ServerCase extends Purpose {
  readonly id: string
  readonly name: string
  /** A refusal: it must go red where nothing is refused. */
  readonly denial?: true
  readonly run: (server: ServerView) => Promise<string>
}
