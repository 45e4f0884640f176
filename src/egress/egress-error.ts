import type { DenialCode } from './gate-types.js'

/** Why a connection that was allowed could not be had, or ended early. Its message is one printable line, fit for the guest. */
export class EgressError extends Error {
  override readonly name = 'EgressError'

  constructor(
    readonly code: DenialCode | 'unreachable' | 'timed-out' | 'broken',
    message: string,
  ) {
    super(message)
  }
}
