import type { EventEmitter } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'
import type { Ending, Outcome, OutputEvent, SignalName } from '../contract/run.js'

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
 * signal, then `close` once the streams have ended; or `error` and `close` when it did not start. An ending by one of our limits is told as SIGKILL.
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
  /** False when it has ended. SIGTERM when not given, as there. */
  kill(signal?: SignalName | number): boolean
}

export interface Viewed {
  readonly program: PlatformProcess
  wait(): Promise<Ending>
  write(chunk: Uint8Array): Promise<void>
  end(): Promise<void>
}

interface NodeModules {
  readonly events: { readonly EventEmitter: typeof EventEmitter }
  readonly stream: { readonly Readable: typeof Readable; readonly Writable: typeof Writable }
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
  if (!events || !stream) throw new SandboxError('unsupported', 'the streams and events of Node.js are not available here')
  return { events, stream, nextTick: (act) => host?.nextTick?.(act) }
}

export function viewAsChildProcess(viewed: Viewed): ChildProcessView {
  const { events, stream, nextTick } = nodeModules()
  const { program } = viewed
  const stdin = writableOf(viewed, stream)
  const stdout = readableOf(program, { type: 'stdout', stream })
  const stderr = readableOf(program, { type: 'stderr', stream })
  const hasStarted = program.pid !== 0
  const state = { exitCode: null as number | null, signalCode: null as string | null, killed: false, isOver: !hasStarted }
  const kill = (signal: SignalName | number = 'SIGTERM'): boolean => {
    if (state.isOver) return false
    send(program, signal)
    state.killed = true
    return true
  }
  const emitter = new events.EventEmitter()
  const child = Object.defineProperties(emitter, {
    pid: { value: hasStarted ? program.pid : undefined, enumerable: true },
    exitCode: { get: () => state.exitCode, enumerable: true },
    signalCode: { get: () => state.signalCode, enumerable: true },
    killed: { get: () => state.killed, enumerable: true },
  })
  // Listeners are added once the caller has this.
  nextTick(() => void tell({ viewed, emitter, stdin, outputs: [stdout, stderr], hasStarted, state }))
  return Object.assign(child, { stdin, stdout, stderr, stdio: [stdin, stdout, stderr] as const, kill }) as unknown as ChildProcessView
}

/** SIGKILL by its number too. */
function send(program: PlatformProcess, signal: SignalName | number): void {
  const name: SignalName = typeof signal === 'number' ? (numbered[signal] ?? `SIG${signal}`) : signal
  const sent = name === 'SIGKILL' ? program.kill() : program.signal(name)
  // Whoever waits for the program is told when its sandbox fails.
  sent.catch(() => undefined)
}

const numbered: Readonly<Record<number, SignalName>> = { 1: 'SIGHUP', 2: 'SIGINT', 3: 'SIGQUIT', 9: 'SIGKILL', 10: 'SIGUSR1', 12: 'SIGUSR2', 15: 'SIGTERM' }

interface Told {
  readonly viewed: Viewed
  readonly emitter: EventEmitter
  readonly stdin: Writable
  readonly outputs: readonly [Readable, Readable]
  readonly hasStarted: boolean
  readonly state: { exitCode: number | null; signalCode: string | null; isOver: boolean }
}

async function tell({ viewed, emitter, stdin, outputs, hasStarted, state }: Told): Promise<void> {
  const closed = Promise.all(outputs.map((output) => new Promise<void>((resolve) => output.once('close', () => resolve()))))
  if (hasStarted) emitter.emit('spawn')
  try {
    const { outcome } = await viewed.wait()
    state.isOver = true
    Object.assign(state, codesOf(outcome))
    if (outcome.kind === 'not-started') emitter.emit('error', startError(outcome))
    else emitter.emit('exit', state.exitCode, state.signalCode)
  } catch (error) {
    state.isOver = true
    emitter.emit('error', error)
  }
  stdin.destroy()
  // What nobody reads must not hold `close` back.
  for (const output of outputs) if (output.readableFlowing === null && output.listenerCount('readable') === 0) output.resume()
  await closed
  emitter.emit('close', state.exitCode, state.signalCode)
}

function codesOf(outcome: Outcome): { exitCode: number | null; signalCode: string | null } {
  switch (outcome.kind) {
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

function readableOf(program: PlatformProcess, { type, stream }: Pick<NodeModules, 'stream'> & Pick<OutputEvent, 'type'>): Readable {
  let events: AsyncIterator<OutputEvent, undefined> | undefined
  const next = async (): Promise<Uint8Array | null> => {
    events ??= program.output[Symbol.asyncIterator]() as AsyncIterator<OutputEvent, undefined>
    for (;;) {
      const { done, value } = await events.next()
      if (done === true) return null
      if (value.type === type && value.bytes.length > 0) return value.bytes
    }
  }
  return new stream.Readable({
    read() {
      next().then(
        (bytes) => this.push(bytes),
        // Told by the child itself: a stream's own error would have to be listened for on each of them.
        () => this.destroy(),
      )
    },
    destroy(error, done) {
      void events?.return?.()
      done(error)
    },
  })
}

function writableOf(viewed: Viewed, { Writable }: NodeModules['stream']): Writable {
  const settle = (act: Promise<void>, done: (error?: Error | null) => void): void => {
    act.then(
      () => done(),
      (error: unknown) => done(error as Error),
    )
  }
  return new Writable({
    write: (chunk: Uint8Array, _, done) => settle(viewed.write(chunk), done),
    final: (done) => settle(viewed.end(), done),
  })
}
