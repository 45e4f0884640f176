import { fstatSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'

/** Our reader went away: the run ends as quietly as any program does at SIGPIPE. */
export class ReaderGone extends Error {}

/** Whether there is an input that a program should get: a pipe, a file or a socket, but no terminal and no empty device. */
export function hasInput(): boolean {
  try {
    const stat = fstatSync(0)
    return stat.isFIFO() || stat.isFile() || stat.isSocket()
  } catch {
    return false
  }
}

/** Hands `source` to the program as fast as it reads. Ends quietly whichever side is over first. */
export async function forwardInput(source: Readable, program: PlatformProcess): Promise<void> {
  try {
    for await (const chunk of source) await program.write(chunk as Uint8Array)
  } catch {
    // The source was cut off or the program is gone: either way there is nothing more to hand over.
  }
  await program.endInput().catch(() => undefined)
}

/** Writes and waits until the bytes are taken, so that a slow reader holds the program back. */
function writeAll(stream: Writable, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(bytes, (error) => {
      if (!error) resolve()
      else if ((error as NodeJS.ErrnoException).code === 'EPIPE') reject(new ReaderGone())
      else reject(new SandboxError('internal', `cannot write the program's output: ${error.message}`, { cause: error }))
    })
  })
}

/** Streams what the program prints to our own stdout and stderr. */
export async function streamOutput(program: PlatformProcess): Promise<void> {
  for await (const event of program.output) {
    if (event.type === 'stdout') await writeAll(process.stdout, event.bytes)
    // Nobody may be listening to stderr any more; that is no reason to stop a program whose stdout is read.
    else await writeAll(process.stderr, event.bytes).catch(() => undefined)
  }
}

export interface Captured {
  readonly stdout: Buffer
  readonly stderr: Buffer
}

/** Keeps what the program prints; the engine's output limit bounds it. */
export async function captureOutput(program: PlatformProcess): Promise<Captured> {
  const chunks = { stdout: [] as Buffer[], stderr: [] as Buffer[] }
  for await (const event of program.output) chunks[event.type].push(Buffer.from(event.bytes))
  return { stdout: Buffer.concat(chunks.stdout), stderr: Buffer.concat(chunks.stderr) }
}

/** Resolves when everything written so far has left us, or never can. */
export async function flushOutput(): Promise<void> {
  const empty = new Uint8Array()
  await Promise.all([process.stdout, process.stderr].map((stream) => writeAll(stream, empty).catch(() => undefined)))
}
