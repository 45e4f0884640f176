import type { EventEmitter } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'
import type { Command, Outcome, SignalName } from '../contract/run.js'
import { readableOf, type StreamModule, writableOf } from './child-process-streams.js'

type Listener = (...args: never[]) => void

/** As much of Node's EventEmitter as is promised here, so that whoever reads these types needs none of Node's. */
interface Emitter {
  on(event: string, listener: Listener): this
  once(event: string, listener: Listener): this
  off(event: string, listener: Listener): this
}

/** A Readable of Node's. */
export interface NodeReadable extends Emitter, AsyncIterable<Uint8Array> {
  pipe<Target extends object>(target: Target): Target
  setEncoding(encoding: string): this
}

/** A Writable of Node's. */
export interface NodeWritable extends Emitter {
  write(chunk: string | Uint8Array): boolean
  end(chunk?: string | Uint8Array): unknown
}

/**
 * What `child_process.spawn()` gives, of a program in a sandbox. Its events come as there: `spawn`, then what the streams have, then `exit` with code and
 * signal, then `close` once the streams have ended; or `error` and `close` when it did not start, and only then: as there, an `error` that nobody listens
 * for is an uncaught one. An ending by one of our limits, or with its sandbox, is told as SIGKILL.
 */
export interface ChildProcessView extends Emitter {
  /** As seen inside; undefined when it did not start. */
  readonly pid: number | undefined
  readonly stdin: NodeWritable
  readonly stdout: NodeReadable
  readonly stderr: NodeReadable
  readonly stdio: readonly [NodeWritable, NodeReadable, NodeReadable]
  readonly exitCode: number | null
  readonly signalCode: string | null
  /** Whether a signal was sent by `kill`. */
  readonly killed: boolean
  /** There are no messages to such a child. */
  readonly connected: false
  /** The program, `/bin/sh` for a string; empty when it was attached to. */
  readonly spawnfile: string
  readonly spawnargs: readonly string[]
  /** False when it has ended. SIGTERM when not given, as there; throws for what is no signal. */
  kill(signal?: SignalName | number): boolean
  /** Whether Node.js goes on for as long as the program does. */
  ref(): void
  unref(): void
}

/** Here and not beside the streams, whose types are Node's. */
export interface Written {
  write(chunk: Uint8Array): Promise<void>
  end(): Promise<void>
}

export interface Viewed extends Written {
  readonly program: PlatformProcess
  readonly command: Command | undefined
}

interface NodeModules {
  readonly events: { readonly EventEmitter: typeof EventEmitter }
  readonly stream: StreamModule
  readonly signals: Readonly<Record<string, number>>
  readonly nextTick: (act: () => void) => void
}

interface NodeHost {
  readonly getBuiltinModule?: (name: string) => unknown
  readonly nextTick?: (act: () => void) => void
}

/** Asked for by the call and not by an import, which a browser would have to answer. */
function nodeModules(): NodeModules {
  const host = (globalThis as { process?: NodeHost }).process
  const events = host?.getBuiltinModule?.('node:events') as NodeModules['events'] | undefined
  const stream = host?.getBuiltinModule?.('node:stream') as NodeModules['stream'] | undefined
  const os = host?.getBuiltinModule?.('node:os') as { readonly constants: { readonly signals: Record<string, number> } } | undefined
  if (!events || !stream || !os) throw new SandboxError('unsupported', 'the streams and events of Node.js are not available here')
  return { events, stream, signals: os.constants.signals, nextTick: (act) => host?.nextTick?.(act) }
}

interface Told {
  readonly program: PlatformProcess
  readonly stdin: Writable
  readonly outputs: readonly [Readable, Readable]
  readonly state: { exitCode: number | null; signalCode: string | null; isOver: boolean }
  /** Resolves when the listeners were called. */
  readonly emit: (event: string, ...values: readonly unknown[]) => Promise<void>
}

export function viewAsChildProcess(viewed: Viewed): ChildProcessView {
  const { events, stream, signals, nextTick } = nodeModules()
  const { program, command } = viewed
  const stdin = writableOf(viewed, stream)
  const stdout = readableOf(program, { type: 'stdout', stream })
  const stderr = readableOf(program, { type: 'stderr', stream })
  const hasStarted = program.pid !== 0
  const state = { exitCode: null as number | null, signalCode: null as string | null, killed: false, isOver: !hasStarted }
  const kill = (signal: unknown = 'SIGTERM'): boolean => {
    const name = signal === 0 ? undefined : signalNamed(signal, signals)
    if (state.isOver) return false
    // Whoever listens for the program's end is told when its sandbox fails.
    if (name !== undefined) (name === 'SIGKILL' ? program.kill() : program.signal(name)).catch(() => undefined)
    state.killed = true
    return true
  }
  const emitter = new events.EventEmitter()
  const child = Object.defineProperties(emitter, {
    exitCode: { get: () => state.exitCode, enumerable: true },
    signalCode: { get: () => state.signalCode, enumerable: true },
    killed: { get: () => state.killed, enumerable: true },
  })
  // Listeners are added once the caller has this. What one of them throws, or an error that none hears, is an uncaught exception as with Node's own.
  const emit: Told['emit'] = (event, ...values) =>
    new Promise((resolve) => {
      nextTick(() => {
        try {
          emitter.emit(event, ...values)
        } finally {
          resolve()
        }
      })
    })
  void tell({ program, stdin, outputs: [stdout, stderr], state, emit })
  const streams = { stdin, stdout, stderr, stdio: [stdin, stdout, stderr] as const }
  const calls = { kill, ref: () => program.ref(), unref: () => program.unref() }
  return Object.assign(child, {
    pid: hasStarted ? program.pid : undefined,
    connected: false,
    ...callOf(command),
    ...streams,
    ...calls,
  }) as unknown as ChildProcessView
}

/** As Node tells it of its own; a string is for the shell. */
function callOf(command: Command | undefined): Pick<ChildProcessView, 'spawnfile' | 'spawnargs'> {
  const spawnargs = typeof command === 'string' ? ['/bin/sh', '-c', command] : [...(command ?? [])]
  return { spawnfile: spawnargs[0] ?? '', spawnargs }
}

/** By name or number; throws what Node throws for any other. Node knows no real-time signals, which a program inside may well use. */
function signalNamed(signal: unknown, signals: NodeModules['signals']): SignalName {
  const wanted = typeof signal === 'string' ? signal.toUpperCase() : signal
  const named = Object.entries(signals).find(([name, number]) => name === wanted || number === wanted)?.[0]
  const isRealTime = typeof wanted === 'string' && /^SIG(?:3[2-9]|[45]\d|6[0-4])$/.test(wanted)
  if (named === undefined && !isRealTime) throw Object.assign(new TypeError(`Unknown signal: ${String(signal)}`), { code: 'ERR_UNKNOWN_SIGNAL' })
  return (named ?? wanted) as SignalName
}

async function tell({ program, stdin, outputs, state, emit }: Told): Promise<void> {
  const closed = Promise.all(outputs.map((output) => new Promise<void>((resolve) => output.once('close', () => resolve()))))
  if (program.pid !== 0) await emit('spawn')
  const outcome = await program.ended.then(
    (ending) => ending.outcome,
    // It went with its sandbox, whose owner is told why by every call.
    () => undefined,
  )
  state.isOver = true
  Object.assign(state, codesOf(outcome))
  if (outcome?.kind === 'not-started') await emit('error', startError(outcome))
  else await emit('exit', state.exitCode, state.signalCode)
  stdin.destroy()
  // What nobody reads must not hold `close` back.
  for (const output of outputs) if (output.readableFlowing === null && output.listenerCount('readable') === 0) output.resume()
  await closed
  await emit('close', state.exitCode, state.signalCode)
}

function codesOf(outcome: Outcome | undefined): { exitCode: number | null; signalCode: string | null } {
  switch (outcome?.kind) {
    case 'exited':
      return { exitCode: outcome.code, signalCode: null }
    case 'signaled':
      return { exitCode: null, signalCode: outcome.signal }
    case 'not-started':
      return { exitCode: outcome.code === 127 ? -2 : -13, signalCode: null }
    default:
      return { exitCode: null, signalCode: 'SIGKILL' }
  }
}

function startError({ code, reason }: Extract<Outcome, { readonly kind: 'not-started' }>): Error {
  const [name, errno] = code === 127 ? ['ENOENT', -2] : ['EACCES', -13]
  return Object.assign(new Error(`spawn ${name}: ${reason}`), { code: name, errno, syscall: 'spawn' })
}
