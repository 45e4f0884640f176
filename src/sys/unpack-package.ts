/** What is in a Debian package, without running anything of it: its scripts are never started. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { SandboxError } from '../contract/errors.js'

const unpacker = '/usr/bin/dpkg-deb'
const tar = ['/usr/bin/tar', '/bin/tar']

export function hasUnpacker(): boolean {
  return existsSync(unpacker) && tar.some((program) => existsSync(program))
}

export interface Unpacking {
  readonly file: string
  readonly into: string
  /** Patterns of tar, below `./`. */
  readonly leftOut: readonly string[]
  readonly signal?: AbortSignal | undefined
}

/** Everything belongs to whoever unpacks it, and nothing is set-user-id. Folders that are links already stay links. */
export async function unpackPackage({ file, into, leftOut, signal }: Unpacking): Promise<void> {
  signal?.throwIfAborted()
  const options = { env: { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8' }, killSignal: 'SIGKILL' as const, ...(signal && { signal }) }
  const reader = spawn(unpacker, ['--fsys-tarfile', file], { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  const writer = spawn(tar.find((program) => existsSync(program)) ?? 'tar', tarArguments(into, leftOut), { ...options, stdio: ['pipe', 'ignore', 'pipe'] })
  const flowing = pipeline(reader.stdout, writer.stdin).catch(() => undefined)
  const [read, written] = await Promise.all([ending(reader), ending(writer), flowing])
  signal?.throwIfAborted()
  const failed = written.code === 0 ? read : written
  if (failed.code === 0) return
  const said = failed.words.trim().split('\n')[0] ?? ''
  if (/No space left|quota/i.test(failed.words)) throw new SandboxError('full', `no space is left in ${into}`, { hint: `df -h ${into}` })
  throw new SandboxError('broken', `${file} could not be unpacked: ${said === '' ? `status ${failed.code}` : said}`)
}

function tarArguments(into: string, leftOut: readonly string[]): string[] {
  const safe = ['--keep-directory-symlink', '--no-same-owner', '--no-same-permissions', '--delay-directory-restore']
  return ['-x', '-f', '-', '-C', into, ...safe, ...leftOut.map((pattern) => `--exclude=${pattern}`)]
}

async function ending(child: ChildProcess): Promise<{ code: number | null; words: string }> {
  const closed = new Promise<number | null>((resolve) => child.once('error', () => resolve(null)).once('close', (code) => resolve(code)))
  const [code, words] = await Promise.all([closed, text(child.stderr as Readable)])
  return { code, words }
}
