import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { FileWorker } from '../../src/channel/file-worker.js'
import type { WorkerRun } from '../../src/channel/file-worker-talk.js'
import type { OutputEvent } from '../../src/contract/run.js'

const root = join(import.meta.dirname, '../..')
const flags = ['-std=gnu11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror', '-O1', '-g', '-fsanitize=address,undefined', '-fno-sanitize-recover=all']

/** The worker alone, with the sanitizers; built when a source is newer. */
function buildFileWorker(): string {
  const folder = join(root, 'build/sanitized', `linux-${process.arch}`)
  const program = join(folder, 'file-worker')
  const warden = join(root, 'warden')
  const names = readdirSync(warden).filter((name) => /^(files|tar-|sha256|wire|die).*\.[ch]$/.test(name))
  const sources = [...names.map((name) => join(warden, name)), join(import.meta.dirname, 'programs/file-worker.c')]
  const newest = Math.max(...sources.map((path) => statSync(path).mtimeMs))
  mkdirSync(folder, { recursive: true })
  if ((statSync(program, { throwIfNoEntry: false })?.mtimeMs ?? 0) > newest) return program
  const draft = `${program}.${process.pid}`
  const built = spawnSync('gcc', [...flags, '-o', draft, ...sources.filter((path) => path.endsWith('.c'))], { encoding: 'utf8' })
  if (built.status !== 0) throw new Error(built.stderr)
  renameSync(draft, program)
  return program
}

async function* outputOf(child: ChildProcess, closed: Promise<unknown>): AsyncGenerator<OutputEvent, undefined> {
  const stderr: Buffer[] = []
  child.stderr?.on('data', (bytes: Buffer) => stderr.push(bytes))
  for await (const bytes of child.stdout as Readable) yield { type: 'stdout', bytes: bytes as Uint8Array }
  await closed
  if (stderr.length > 0) yield { type: 'stderr', bytes: Buffer.concat(stderr) }
}

/** A child of this process as the channel would show it. */
function runOf(child: ChildProcess): WorkerRun {
  const input = child.stdin as Writable
  input.on('error', () => undefined)
  const exited = new Promise<{ code: number | null; signal: string | null }>((resolve) => child.on('close', (code, signal) => resolve({ code, signal })))
  return {
    output: outputOf(child, exited),
    write: (bytes) => new Promise<void>((resolve) => input.write(Uint8Array.from(bytes), () => resolve())),
    endInput: () => {
      input.end()
      return Promise.resolve()
    },
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
    discardOutput: () => void child.stdout?.destroy(),
    ref: () => child.ref(),
    unref: () => child.unref(),
    exited: exited as unknown as WorkerRun['exited'],
  }
}

export interface Bench extends AsyncDisposable {
  /** A folder of its own for the test. */
  readonly folder: string
  readonly child: ChildProcess
  readonly run: WorkerRun
  readonly worker: FileWorker
  path(name: string): Uint8Array
}

export function openBench(
  options: { readonly uid?: number | undefined; readonly layers?: string; readonly program?: string; readonly under?: string } = {},
): Bench {
  const folder = mkdtempSync(join(options.under ?? tmpdir(), 'file-worker-'))
  const program = options.program ?? buildFileWorker()
  const ids = options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }
  const child = spawn(program, options.layers === undefined ? [] : [options.layers], { ...ids, env: { ASAN_OPTIONS: 'detect_leaks=1' } })
  const run = runOf(child)
  return {
    folder,
    child,
    run,
    worker: new FileWorker(run),
    path: (name) => Buffer.from(name === '' ? folder : `${folder}/${name}`),
    [Symbol.asyncDispose]: async () => {
      await run.endInput()
      child.stdout?.destroy()
      child.kill('SIGKILL')
      await run.exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export async function* chunks(...parts: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield await Promise.resolve(Buffer.from(part))
}

export async function gather(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const part of bytes) parts.push(part)
  return Buffer.concat(parts)
}

export async function listed<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}
