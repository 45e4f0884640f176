/** The one table of everything that can go wrong on our side. A program that fails is a result; a sandbox that fails throws one of these. */
export const errorTable = {
  invalid: { status: 400, exitCode: 125, retryable: false, means: 'the request is wrong; the message names the field' },
  denied: { status: 403, exitCode: 125, retryable: false, means: 'the user in the cell may not do this, or the place is read-only' },
  'not-found': { status: 404, exitCode: 125, retryable: false, means: 'there is no sandbox with this id here, or in it no such file' },
  conflict: { status: 409, exitCode: 125, retryable: false, means: 'the call does not fit the state of what it was called on' },
  closed: { status: 410, exitCode: 125, retryable: false, means: 'the sandbox was closed before or during the call' },
  expired: { status: 410, exitCode: 125, retryable: false, means: 'the lifetime of the sandbox ran out' },
  busy: { status: 429, exitCode: 125, retryable: true, means: 'a bound of this machine is reached; the same call may succeed later' },
  internal: { status: 500, exitCode: 125, retryable: false, means: 'a defect of ours' },
  unsupported: { status: 501, exitCode: 125, retryable: false, means: 'what was asked for cannot be enforced here, so nothing was started' },
  'not-enforced': {
    status: 502,
    exitCode: 125,
    retryable: false,
    means: 'the kernel says something else than was demanded; the cell was closed before any code of the guest ran',
  },
  broken: { status: 502, exitCode: 125, retryable: true, means: 'the cell ended or spoke out of turn; it was closed' },
  full: { status: 507, exitCode: 125, retryable: false, means: "there is no room left on the sandbox's disk, or on this machine's for what comes out of one" },
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
}

export class SandboxError extends Error {
  override readonly name = 'SandboxError'
  readonly code: ErrorCode
  readonly hint: string | undefined

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.hint = options.hint
  }

  get retryable(): boolean {
    return errorTable[this.code].retryable
  }
}

/** The same error told in other words; unless another hint is given, it keeps its own. */
export function reworded(error: SandboxError, message: string, hint: string | undefined = error.hint): SandboxError {
  return new SandboxError(error.code, message, { ...(hint !== undefined && { hint }), cause: error })
}
