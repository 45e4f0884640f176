import type { PlatformProcess } from '../../src/contract/platform.js'
import type { Ending } from '../../src/contract/run.js'

export interface Collected extends Ending {
  readonly stdout: string
  readonly stderr: string
}

/** Reads a program to its end. */
export async function collect(program: PlatformProcess): Promise<Collected> {
  const texts = { stdout: '', stderr: '' }
  for await (const { type, bytes } of program.output) texts[type] += Buffer.from(bytes).toString('latin1')
  return { ...(await program.ended), ...texts }
}

export async function rejectionOf(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('was not rejected')
}
