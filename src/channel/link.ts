import type { SandboxError } from '../contract/errors.js'
import type { Allowance } from './allowance.js'
import type { Frame } from './frames.js'
import type { Outbox } from './outbox.js'

/** Whom the warden's frames are for: a run, or a connection. */
export interface Party {
  readonly id: number
  /** Throws SandboxError('broken') when the warden must not send this frame now. */
  receive(frame: Frame): void
  /** The channel is over, and the link's outbox knows why. */
  fail(failure: SandboxError): void
}

/** What a party needs of the channel that it belongs to. */
export interface Link {
  readonly outbox: Outbox
  /** What its connections share. */
  readonly allowance: Allowance
  /** The party awaits frames: they find their way to it, and the channel keeps the process alive. */
  attach(party: Party): void
  detach(party: Party): void
  /** Of a party that is attached: whether the process is kept alive for it. Each call undoes the other. */
  letGo(): void
  hold(): void
  /** What the warden says of its kernel goes to whoever made the cell. */
  tell(of: 'cell' | number, said: Uint8Array): void
}
