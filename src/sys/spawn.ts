/** Starting programs on the host: an argument vector, never a shell, and an environment that is exactly what is given. */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { SandboxError } from '../contract/errors.js'
import { joinStdio, type StdioChannel } from './stdio-channel.js'

export interface SpawnOptions {
  readonly cwd?: string
  readonly env: Readonly<Record<string, string>>
  /** What the program gets as descriptors 3, 4, …: an open descriptor of ours, or a pipe to it. */
  readonly descriptors?: readonly (number | 'pipe')[]
}

export interface ProcessEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** It does not keep this process alive, unless its channel does or its end is awaited. */
export interface SpawnedProcess {
  readonly pid: number
  readonly channel: StdioChannel
  /** Our ends of the pipes asked for, by descriptor. */
  readonly pipes: ReadonlyMap<number, Readable & Writable>
  /** The last it wrote to stderr. */
  diagnosis(): string
  signal(name: NodeJS.Signals): void
  /** Resolves when it has exited, whoever else holds its streams. */
  readonly gone: Promise<ProcessEnd>
  /** Resolves when it has exited and its last words are complete. */
  wait(): Promise<ProcessEnd>
}

const maxDiagnosisBytes = 4096

/** Resolves when the program runs; rejects with SandboxError('unavailable') when it cannot be started. */
export async function spawnProcess(argv: readonly [string, ...string[]], options: SpawnOptions): Promise<SpawnedProcess> {
  const [file, ...rest] = argv
  const descriptors = options.descriptors ?? []
  const child = spawn(file, rest, {
    env: { ...options.env },
    stdio: ['pipe', 'pipe', 'pipe', ...descriptors],
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  })
  const ended = new Promise<ProcessEnd>((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })))
  await whenRunning(child, file)
  child.unref()
  const pipes = descriptors.flatMap((kind, index) => (kind === 'pipe' ? [[index + 3, child.stdio[index + 3] as Readable & Writable] as const] : []))
  return spawnedProcess({
    pid: child.pid as number,
    stdin: child.stdin as Writable,
    stdout: child.stdout as Readable,
    stderr: child.stderr as Readable,
    pipes: new Map(pipes),
    ended,
    signal: (name) => void child.kill(name),
    hold: () => {
      child.ref()
      return () => undefined
    },
  })
}

/** A process that runs, by whomever it was started. */
export interface SpawnedParts extends Pick<SpawnedProcess, 'pid' | 'pipes' | 'signal'> {
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable & { ref?(): void; unref?(): void }
  readonly ended: Promise<ProcessEnd>
  /** Its end is awaited: this process stays alive until it is told, or what this returns is called. */
  readonly hold: () => () => void
}

export function spawnedProcess({ pid, stdin, stdout, stderr, pipes, ended, signal, hold }: SpawnedParts): SpawnedProcess {
  const silent = stderr.closed ? Promise.resolve() : new Promise((resolve) => stderr.once('close', resolve))
  const words = keepLastWords(stderr)
  const channel = joinStdio({ stdin, stdout })
  channel.unref()
  stderr.unref?.()
  return {
    pid,
    channel,
    pipes,
    diagnosis: words,
    signal,
    gone: ended,
    wait: async () => {
      const letGo = hold()
      stderr.ref?.()
      try {
        const [end] = await Promise.all([ended, silent])
        return end
      } finally {
        letGo()
      }
    },
  }
}

function whenRunning(child: ChildProcess, file: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', (error) =>
      reject(new SandboxError('unavailable', `${file} could not be started: ${error.message}`, { hint: './glovebox doctor', cause: error })),
    )
  })
}

function keepLastWords(stderr: Readable): () => string {
  let words = Buffer.alloc(0)
  stderr.on('error', () => {})
  stderr.on('data', (chunk: Buffer) => {
    words = Buffer.concat([words, chunk]).subarray(-maxDiagnosisBytes)
  })
  return () => words.toString('utf8').trim()
}

export interface Captured {
  readonly code: number | null
  readonly stdout: Buffer
  readonly stderr: string
}

export interface CaptureOptions {
  /** It is started before this is known. */
  readonly input?: Uint8Array | Promise<Uint8Array>
  readonly env?: Readonly<Record<string, string>>
  /** It is killed when it takes longer; its code is then null. */
  readonly timeoutMs?: number
}

/** Runs a program to its end and keeps all it says; for programs of ours and of the system, which say little. */
export async function capture(argv: readonly [string, ...string[]], options: CaptureOptions = {}): Promise<Captured> {
  const [file, ...rest] = argv
  const child = spawn(file, rest, { cwd: '/', env: { ...options.env }, stdio: 'pipe', killSignal: 'SIGKILL', timeout: options.timeoutMs ?? 0 })
  const closed = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  // A program that stops reading says why in its own words; the broken pipe adds nothing.
  child.stdin.on('error', () => undefined)
  const end = (input?: Uint8Array): unknown => child.stdin.end(input)
  void Promise.resolve(options.input).then(end, () => end())
  const [stdout, stderr] = [keepAll(child.stdout), keepAll(child.stderr)]
  // What one that was killed has started may hold its output open for as long as it likes.
  child.once('exit', () => child.killed && [child.stdout, child.stderr].forEach((stream) => stream.destroy()))
  const code = await closed
  return { code, stdout: stdout(), stderr: stderr().toString('utf8') }
}

function keepAll(stream: Readable): () => Buffer {
  const chunks: Buffer[] = []
  stream.on('error', () => undefined)
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  return () => Buffer.concat(chunks)
}
