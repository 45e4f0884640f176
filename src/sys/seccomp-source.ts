import { type FileHandle, open } from 'node:fs/promises'
import { constants } from 'node:fs'
import { SandboxError } from '../contract/errors.js'

/** A profile in Docker's JSON format, as it was read. */
export interface SeccompSource {
  readonly text: string
  /** How errors name it, such as its path. */
  readonly name: string
}

const mostBytes = 2 ** 20
const nameOfContent = 'in the spec'

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'may not be read',
  ELOOP: 'goes through too many symbolic links',
}

/** The text of a profile: of a file, by its path from the working folder, or of the content itself. Throws SandboxError('invalid') naming the file. */
export async function readSeccompSource(profile: string | Readonly<Record<string, unknown>>): Promise<SeccompSource> {
  return typeof profile === 'string' ? { text: await readText(profile), name: profile } : { text: textOf(profile), name: nameOfContent }
}

async function readText(path: string): Promise<string> {
  // A fifo would wait for a writer that never comes.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    const code = (error as NodeJS.ErrnoException).code ?? String(error)
    throw refusal(path, reasons[code] ?? `cannot be opened (${code})`)
  })
  try {
    return await readBounded(file, path)
  } finally {
    await file.close()
  }
}

async function readBounded(file: FileHandle, path: string): Promise<string> {
  const status = await file.stat()
  if (status.isDirectory()) throw refusal(path, 'is a folder')
  if (!status.isFile()) throw refusal(path, 'is not a file')
  const bytes = Buffer.alloc(mostBytes + 1)
  let length = 0
  for (let got = -1; got !== 0 && length < bytes.length; length += got) got = (await file.read(bytes, length, bytes.length - length, null)).bytesRead
  if (length > mostBytes) throw refusal(path, 'is larger than 1 MiB')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, length))
  } catch {
    throw refusal(path, 'is not UTF-8')
  }
}

function textOf(profile: Readonly<Record<string, unknown>>): string {
  let text: string
  try {
    text = JSON.stringify(profile)
  } catch (cause) {
    throw new SandboxError('invalid', `seccomp profile ${nameOfContent}: cannot be written as JSON`, { cause })
  }
  if (Buffer.byteLength(text) > mostBytes) throw refusal(nameOfContent, 'is larger than 1 MiB')
  return text
}

function refusal(name: string, what: string): SandboxError {
  return new SandboxError('invalid', `seccomp profile ${name}: ${what}`)
}
