import type { Json } from './posture.js'

/** The one table of everything that can go wrong on our side. A program that fails is a result; a sandbox that fails throws one of these. */
export const errorTable = {
  invalid: { status: 400, exitCode: 125, retryable: false, means: 'the request is wrong; the message names the field' },
  unauthorized: { status: 401, exitCode: 125, retryable: false, means: 'the key is missing, or is none that is accepted: wrong, expired or revoked' },
  denied: { status: 403, exitCode: 125, retryable: false, means: 'the user in the cell may not do this, or the place is read-only' },
  forbidden: { status: 403, exitCode: 125, retryable: false, means: 'the key is good, and its scopes do not include this' },
  'not-found': { status: 404, exitCode: 125, retryable: false, means: 'there is no sandbox with this id here, or in it no such file' },
  conflict: { status: 409, exitCode: 125, retryable: false, means: 'the call does not fit the state of what it was called on' },
  closed: { status: 410, exitCode: 125, retryable: false, means: 'the sandbox was closed before or during the call' },
  expired: { status: 410, exitCode: 125, retryable: false, means: 'the lifetime of the sandbox ran out' },
  busy: { status: 429, exitCode: 125, retryable: true, means: 'a bound of this machine is reached; the same call may succeed later' },
  quota: {
    status: 429,
    exitCode: 125,
    retryable: true,
    means: "a quota of the tenant's is used up; the message names it, what is used and what was asked for",
  },
  internal: { status: 500, exitCode: 125, retryable: false, means: 'a defect of ours' },
  unsupported: { status: 501, exitCode: 125, retryable: false, means: 'what was asked for cannot be enforced here, so nothing was started' },
  'not-enforced': {
    status: 502,
    exitCode: 125,
    retryable: false,
    means: 'the kernel says something else than was demanded; the cell was closed before any code of the guest ran',
  },
  broken: { status: 502, exitCode: 125, retryable: true, means: 'the cell ended or spoke out of turn; it was closed' },
  full: {
    status: 507,
    exitCode: 125,
    retryable: false,
    means: "there is no room left on the sandbox's disk, or on this machine's for what comes out of one or for the audit trail",
  },
  unavailable: { status: 503, exitCode: 125, retryable: false, means: 'no driver can build a cell on this machine; the hint removes the obstacle' },
} as const satisfies Record<string, ErrorRow>

interface ErrorRow {
  readonly status: number
  readonly exitCode: number
  readonly retryable: boolean
  readonly means: string
}

export type ErrorCode = keyof typeof errorTable

export interface ErrorOptions {
  /** The next act, as a command. */
  readonly hint?: string
  readonly cause?: unknown
  /** Of what may succeed later: when, where that is known. */
  readonly retryAfterMs?: number
  /** The message's facts, for programs. */
  readonly details?: Readonly<Record<string, Json>>
}

export class SandboxError extends Error {
  override readonly name = 'SandboxError'
  readonly code: ErrorCode
  readonly hint: string | undefined
  readonly retryAfterMs: number | undefined
  readonly details: Readonly<Record<string, Json>> | undefined

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.hint = options.hint
    this.retryAfterMs = options.retryAfterMs
    this.details = options.details
  }

  get retryable(): boolean {
    return errorTable[this.code].retryable
  }
}

/** The same error told in other words; unless another hint is given, it keeps its own. */
export function reworded(error: SandboxError, message: string, hint: string | undefined = error.hint): SandboxError {
  const { retryAfterMs, details } = error
  const kept = { ...(hint !== undefined && { hint }), ...(retryAfterMs !== undefined && { retryAfterMs }), ...(details && { details }) }
  return new SandboxError(error.code, message, { ...kept, cause: error })
}
