import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { SandboxError } from '../../contract/errors.js'

const mostBytes = 2 ** 20

/** The text of a file; undefined when there is none. What is no file, or too large to be written by a person, is refused instead of waited for. */
export function readOrdinary(path: string): string | undefined {
  const file = opened(path)
  if (file === undefined) return undefined
  try {
    const status = fstatSync(file)
    if (!status.isFile()) throw new SandboxError('invalid', `${path} is no file`)
    if (status.size > mostBytes) throw new SandboxError('invalid', `${path} has more than ${mostBytes} bytes`)
    return readFileSync(file, 'utf8')
  } finally {
    closeSync(file)
  }
}

function opened(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw new SandboxError('invalid', `${path} cannot be read: ${message}`, { cause: error })
  }
}
