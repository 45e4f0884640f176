import { type ErrorCode, SandboxError } from '../../src/contract/errors.js'

/** What an act is refused with: its code and its message. */
export function refusalOf(act: () => unknown): readonly [ErrorCode, string] {
  try {
    act()
  } catch (error) {
    if (error instanceof SandboxError) return [error.code, error.message]
    throw error
  }
  throw new Error('was not refused')
}
