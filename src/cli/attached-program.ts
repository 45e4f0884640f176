/** A program that we stand between: its input is ours, and so are our signals. */
import type { PlatformProcess } from '../contract/platform.js'
import { forwardInput, type Input } from './input.js'
import { type Interrupts, untilAborted } from './interrupts.js'

interface Stoppable {
  readonly interrupts: Interrupts
  readonly program: PlatformProcess
  readonly input: Input | undefined
}

/** Lets input and Ctrl-C reach the program; when we are told to stop or the input breaks, throws what it was. */
export async function orStopped(finished: Promise<number>, { interrupts, program, input }: Stoppable): Promise<number> {
  using _attached = interrupts.attach({
    interrupt: () => void program.signal('SIGINT').catch(() => undefined),
    kill: () => void program.kill('interrupted twice').catch(() => undefined),
  })
  const broken = input === undefined ? [] : [untilBroken(forwardInput(input, program))]
  try {
    return await Promise.race([finished, untilAborted(interrupts.signal), ...broken])
  } finally {
    finished.catch(() => undefined)
  }
}

/** Rejects when the forwarding does; that it is done is no news. */
function untilBroken(forwarded: Promise<void>): Promise<never> {
  return new Promise((_, reject) => {
    forwarded.catch(reject)
  })
}

/** The text, each invalid sequence as U+FFFD; and, only when that lost something, the bytes themselves as base64. */
export function textOf(name: 'stdout' | 'stderr', bytes: Buffer): Record<string, string> {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  return Buffer.from(text).equals(bytes) ? { [name]: text } : { [name]: text, [`${name}Base64`]: bytes.toString('base64') }
}
