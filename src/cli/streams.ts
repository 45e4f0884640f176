import type { Writable } from 'node:stream'
import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'

/** Our reader went away: we end as quietly as any program does at SIGPIPE. */
export class ReaderGone extends Error {}

/** Our stdout takes nothing, so what there is to say goes to stderr, JSON or not. */
export class OutputRefused extends SandboxError {}

/** Writes and waits until the bytes are taken, so that a slow reader holds the writer back, and a full disk is an error. */
function writeAll(stream: Writable, bytes: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(bytes, (error) => {
      if (!error) resolve()
      else if ((error as NodeJS.ErrnoException).code === 'EPIPE') reject(new ReaderGone())
      else reject(new OutputRefused('internal', `cannot write to stdout: ${error.message}`, { cause: error }))
    })
  })
}

/** What a guest printed, on one of our streams. Rejects with ReaderGone or OutputRefused. */
export function writeTo(stream: Writable, bytes: string | Uint8Array): Promise<void> {
  return writeAll(stream, bytes)
}

/** Text of ours on stdout. Rejects with ReaderGone or OutputRefused. */
export function writeOut(text: string): Promise<void> {
  return writeAll(process.stdout, text)
}

/** Where the cursor of the person's terminal was left by what was written through it. */
export interface Cursor {
  isMidLine: boolean
}

/** Streams what the program prints to our own stdout and stderr. */
export async function streamOutput(program: PlatformProcess, cursor: Cursor): Promise<void> {
  for await (const { type, bytes } of program.output) {
    const stream = process[type]
    if (stream.isTTY && bytes.length > 0) cursor.isMidLine = bytes.at(-1) !== 0x0a
    const written = writeAll(stream, bytes)
    // Nobody may be listening to stderr any more; that is no reason to stop a program whose stdout is read.
    await (type === 'stdout' ? written : written.catch(() => undefined))
  }
}

/** Lets a line of ours begin at the left of a terminal where the program stopped in the middle of one. */
export function startLine(cursor: Cursor): void {
  if (cursor.isMidLine && process.stderr.isTTY) process.stderr.write('\n')
  cursor.isMidLine = false
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
