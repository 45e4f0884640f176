import { constants, fstatSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { isatty } from 'node:tty'
import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'

/** What a program is to read. */
export interface Input {
  readonly chunks: AsyncIterable<Uint8Array>
  /** Stops reading, wherever that is. */
  close(): void
}

/** Our stdin, when it is one that a program should get: anything open that is no terminal. A folder is refused, before anything starts. */
export function openInput(): Input | undefined {
  const stat = statInput()
  if (stat === undefined || isatty(0)) return undefined
  if (stat.isDirectory()) throw unreadable('it is a folder')
  if (stat.isCharacterDevice()) return stat.rdev === nullDevice ? noInput : openDevice()
  return { chunks: process.stdin, close: () => void process.stdin.destroy() }
}

function statInput() {
  try {
    return fstatSync(0)
  } catch {
    return undefined
  }
}

function unreadable(why: string, cause?: unknown): SandboxError {
  return new SandboxError('invalid', `stdin: cannot be read: ${why}`, { cause })
}

/** Linux's number of /dev/null. */
const nullDevice = 0x103

/** What most programs are started with by others, and where nothing can be waited for. */
const noInput: Input = { chunks: nothing(), close: () => undefined }

async function* nothing(): AsyncGenerator<never> {}

const deviceChunkBytes = 65_536
const devicePauseMs = 20

/** A device may have nothing to say for ever, and a read that waits in the thread pool would not let us exit: so no read of it waits. */
function openDevice(): Input {
  const closing = new AbortController()
  return { chunks: readDevice(closing.signal), close: () => closing.abort() }
}

async function* readDevice(signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const device: FileHandle = await open('/proc/self/fd/0', constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    while (!signal.aborted) {
      const bytes = await readSome(device)
      if (bytes?.length === 0) return
      if (bytes) yield bytes
      else await sleep(devicePauseMs)
    }
  } finally {
    await device.close()
  }
}

/** Undefined when there is nothing yet. */
async function readSome(device: FileHandle): Promise<Uint8Array | undefined> {
  const buffer = Buffer.allocUnsafe(deviceChunkBytes)
  try {
    const { bytesRead } = await device.read(buffer, 0, buffer.length, null)
    return buffer.subarray(0, bytesRead)
  } catch (error) {
    if (codeOf(error) === 'EAGAIN') return undefined
    throw error
  }
}

/** Hands the input to the program as fast as it reads. Ends quietly when the program is over first; rejects when the input cannot be read. */
export async function forwardInput(input: Input, program: PlatformProcess): Promise<void> {
  try {
    for await (const chunk of input.chunks) if (!(await isTaken(program, chunk))) return
  } catch (error) {
    // nohup leaves a stdin that can only be written to: a program without an input, not one whose input broke.
    if (codeOf(error) !== 'EBADF') throw unreadable(error instanceof Error ? error.message : String(error), error)
  }
  await program.endInput().catch(() => undefined)
}

function isTaken(program: PlatformProcess, chunk: Uint8Array): Promise<boolean> {
  return program.write(chunk).then(
    () => true,
    () => false,
  )
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code
}
