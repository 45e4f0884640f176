import { checkCallOptions } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import { kindOf } from '../contract/plain-object.js'
import type { CallOptions, PlatformProcess } from '../contract/platform.js'
import type { AttachOptions, PlatformProcesses, ProcessInfo, ProcessName } from '../contract/processes.js'
import type { Ending, OutputEvent, RunRequest } from '../contract/run.js'
import type { EventStream, StreamEvent } from './event-stream.js'
import { OutputQueue } from './output-queue.js'
import { type ProgramDoor, RemoteProgram } from './program.js'
import { allPages } from './pages.js'
import type { Wire } from './wire.js'

export class ClientProcesses implements PlatformProcesses {
  readonly #wire: Wire

  constructor(wire: Wire) {
    this.#wire = wire
  }

  async list(id: string, options: CallOptions = {}): Promise<readonly ProcessInfo[]> {
    const { signal } = checkCallOptions(options)
    return allPages<ProcessInfo>((page) => this.#wire.call('processes.list', { params: { id }, query: page, signal }))
  }

  async attach(id: string, name: ProcessName, options: AttachOptions = {}): Promise<PlatformProcess> {
    const { signal, replay, follow } = checkCallOptions(options, ['signal', 'replay', 'follow'])
    const process = wireName(name)
    const stream = await this.#wire.stream('processes.attach', { params: { id, process }, body: { replay, follow }, signal })
    return keptProgram(this.#wire, stream, { id, follow })
  }
}

function wireName(name: ProcessName): string {
  if (typeof name === 'string' && name !== '') return `tag:${name}`
  if (typeof name === 'number' && Number.isInteger(name) && name > 0) return String(name)
  throw new SandboxError('invalid', `process: expected a pid or a tag, got ${typeof name === 'number' ? String(name) : kindOf(name)}`)
}

/** Starts a program. A run is its stream's; of one that is kept the stream tells only how it ends. */
export async function startProgram(
  wire: Wire,
  id: string,
  { request, signal }: { request: RunRequest; signal: AbortSignal | undefined },
): Promise<PlatformProcess> {
  const stream = await wire.stream('processes.start', { params: { id }, body: request, what: 'run', signal })
  const { background, terminal } = request
  return background === true || terminal !== undefined ? keptProgram(wire, stream, { id }) : runProgram(wire, id, stream)
}

interface Started {
  readonly type: 'started'
  readonly view: string
  readonly pid: number
}

async function startedOf(stream: EventStream): Promise<Started> {
  const event = await stream.next()
  if (event?.type === 'started') return event as unknown as Started
  throw new SandboxError('broken', 'the server does not say what it started')
}

async function runProgram(wire: Wire, id: string, stream: EventStream): Promise<PlatformProcess> {
  const { view, pid } = await startedOf(stream)
  const output = new OutputQueue()
  const ended = followRun(stream, output, () => Promise.resolve()).then((event) => event.ending)
  ended.catch(() => undefined)
  return new RemoteProgram({ pid, door: doorOf(wire, id, view), output, ended, stream })
}

interface Ended {
  readonly ending: Ending
  readonly [key: string]: unknown
}

/** Hands on what a run prints until it has ended and all of it was read; what else is told is told to `others`. */
export async function followRun(stream: EventStream, output: OutputQueue, others: (event: StreamEvent) => unknown): Promise<Ended> {
  try {
    for (let event = await stream.next(); event; event = await stream.next()) {
      if (event.type === 'ended') {
        output.end()
        await output.read
        return event as unknown as Ended
      }
      if (event.type === 'stdout' || event.type === 'stderr') await output.push(event as OutputEvent)
      else others(event)
    }
    throw new SandboxError('broken', 'the server does not say how the program ended')
  } catch (error) {
    output.end({ error })
    throw error
  }
}

async function keptProgram(
  wire: Wire,
  stream: EventStream,
  { id, follow }: { readonly id: string; readonly follow?: boolean | undefined },
): Promise<PlatformProcess> {
  const { view, pid } = await startedOf(stream)
  stream.unfollow()
  const ended = (async () => {
    const event = await stream.next()
    if (event?.type === 'ended') return (event as unknown as Ended).ending
    throw new SandboxError('broken', 'the server does not say how the program ended')
  })()
  ended.catch(() => undefined)
  const read = (): Promise<EventStream> =>
    wire.stream('processes.output', { params: { id, process: `view:${view}` }, query: follow === false ? { follow } : {} })
  return new RemoteProgram({ pid, door: doorOf(wire, id, view), output: { [Symbol.asyncIterator]: () => readerOf(read) }, ended, stream })
}

/** Asked anew after a wait. */
function hasLeft({ isLeft }: { readonly isLeft: boolean }): boolean {
  return isLeft
}

/** Each is a reader of its own, on a stream of its own. */
function readerOf(open: () => Promise<EventStream>): AsyncIterator<OutputEvent, undefined> {
  const done = { done: true, value: undefined } as const
  let opened: Promise<EventStream> | undefined
  const reading = { isLeft: false }
  return {
    next: async () => {
      if (reading.isLeft) return done
      const event = await (await (opened ??= open())).next()
      return event === undefined || event.type === 'ended' || hasLeft(reading) ? done : { done: false, value: event as OutputEvent }
    },
    return: async () => {
      reading.isLeft = true
      await opened?.then((stream) => stream.leave()).catch(() => undefined)
      return done
    },
  }
}

function doorOf(wire: Wire, id: string, view: string): ProgramDoor {
  const params = { id, process: `view:${view}` }
  return {
    stdin: (bytes, { end }) => wire.call('processes.stdin', { params, pieces: bytes, query: end ? { end } : {} }),
    signal: (signal) => wire.call('processes.signal', { params, body: { signal } }),
    resize: (size) => wire.call('processes.resize', { params, body: size, what: 'size' }),
    kill: (reason) => wire.call('processes.kill', { params, body: { reason } }),
  }
}
