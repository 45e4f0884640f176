import { type ErrorOptions, SandboxError, errorTable } from '../contract/errors.js'

/** What is wrong with a request as HTTP, before it is one of the platform's: `invalid`, by the status that HTTP has for it. */
export class HttpError extends SandboxError {
  readonly status: number

  constructor(status: number, message: string, options: ErrorOptions = {}) {
    super(status === 401 ? 'unauthorized' : status === 403 ? 'forbidden' : status === 404 ? 'not-found' : 'invalid', message, options)
    this.status = status
  }
}

export function statusOf(error: SandboxError): number {
  return error instanceof HttpError ? error.status : errorTable[error.code].status
}

/** What every caller may know of what went wrong: a defect of ours is told without its words, which may name what is ours alone. */
export function asSandboxError(error: unknown): SandboxError {
  if (error instanceof SandboxError) return error
  return new SandboxError('internal', 'a defect of the server; its log has more under the id of this request')
}

/** As JSON; the same in a reply and at the end of a stream. */
export function errorInJson(error: SandboxError): Record<string, unknown> {
  const { code, message, hint, retryAfterMs, details } = error
  return { code, message, ...(hint !== undefined && { hint }), ...(retryAfterMs !== undefined && { retryAfterMs }), ...(details && { details }) }
}
