import { constants, openSync, closeSync, fstatSync, readSync } from 'node:fs'
import type { Language } from '../contract/code.js'
import { mostSourceBytes } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import { bytesInWords } from './words.js'
import { languageOfFile } from './code-language.js'

/** One piece of code, as it was given. */
export interface Source {
  /** For messages: a file's name, `-c` or `stdin`. */
  readonly name: string
  readonly language: Language
  read(): Promise<string>
}

export interface GivenSources {
  readonly files: readonly string[]
  readonly codes: readonly string[]
  /** As stated; otherwise the file's own, and python where there is no file. */
  readonly language: Language | undefined
}

/** What is to be run, in order: each -c, then each FILE; without any, what comes on stdin. */
export function sourcesOf({ files, codes, language }: GivenSources): readonly Source[] {
  const typed = codes.map((code): Source => ({ name: '-c', language: language ?? 'python', read: () => Promise.resolve(code) }))
  const read = files.map((file) => (file === '-' ? fromStdin(language) : fromFile(file, language)))
  if (read.filter(({ name }) => name === 'stdin').length > 1)
    throw new SandboxError('invalid', 'FILE: - can be given once; stdin ends only once', { hint: 'glovebox code --help' })
  const all = [...typed, ...read]
  return all.length > 0 ? all : [fromStdin(language)]
}

export function fromFile(file: string, language: Language | undefined): Source {
  const spoken = language ?? languageOfFile(file)
  return { name: file, language: spoken, read: () => Promise.resolve(sourceText(readBounded(file), file)) }
}

function fromStdin(language: Language | undefined): Source {
  return { name: 'stdin', language: language ?? 'python', read: async () => sourceText(await readStdin(), 'stdin') }
}

function readBounded(file: string): Buffer {
  let descriptor: number
  try {
    // A FIFO without a writer would hold us for ever otherwise.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException
    throw new SandboxError('invalid', `FILE: ${file} cannot be read: ${code === 'ENOENT' ? 'there is no such file' : code}`, {
      hint: 'glovebox code --help',
      cause: error,
    })
  }
  try {
    if (fstatSync(descriptor).isDirectory()) throw new SandboxError('invalid', `FILE: ${file} is a folder`, { hint: 'glovebox code --help' })
    const chunks: Buffer[] = []
    for (let size = 0; size <= mostSourceBytes; ) {
      const chunk = Buffer.allocUnsafe(1 << 20)
      const length = readSync(descriptor, chunk)
      if (length === 0) return Buffer.concat(chunks)
      chunks.push(chunk.subarray(0, length))
      size += length
    }
    throw tooLong(file)
  } finally {
    closeSync(descriptor)
  }
}

async function readStdin(): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > mostSourceBytes) throw tooLong('stdin')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function tooLong(name: string): SandboxError {
  return new SandboxError('invalid', `${name}: has more than ${bytesInWords(mostSourceBytes)}, and no code may`)
}

/** Code is text; what is none is told rather than changed on the way. */
function sourceText(bytes: Buffer, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new SandboxError('invalid', `${name}: is no UTF-8 text`, { hint: `iconv -t UTF-8 ${name === 'stdin' ? '' : name}`.trim() })
  }
}
