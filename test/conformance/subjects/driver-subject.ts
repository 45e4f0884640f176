import { randomBytes } from 'node:crypto'
import { connectWarden, type Warden, type WardenProcess } from '../../../src/channel/index.js'
import type { HostView, Subject, SubjectProcess, SubjectSandbox, SubjectStartOptions } from '../../../src/conformance/index.js'
import type { Cell, CellRun, Driver, Probe, TemplateRoot } from '../../../src/contract/driver.js'
import { SandboxError } from '../../../src/contract/errors.js'
import type { Command, Ending, OutputEvent } from '../../../src/contract/run.js'
import type { Spec } from '../../../src/contract/spec.js'
import { outcomeOf } from '../../../src/engine/outcome.js'
import { notStarted, startError } from '../../../src/engine/start-failure.js'
import { signalNumber } from '../../../src/engine/signals.js'
import { countedIn, startRequest } from '../../../src/engine/start-request.js'
import { nothingUsed, usageOf } from '../../../src/engine/usage.js'
import { planLined, planRun } from '../../../src/policy/run.js'
import { parseSpec } from '../../../src/policy/spec.js'
import { filesOfCell } from './cell-files.js'
import { collect } from './collect.js'

export interface DriverSubjectOptions {
  readonly driver: Driver
  readonly host: HostView
  readonly root: TemplateRoot
  /** Handed to the warden where the probe says that guests are filtered. */
  readonly filter: () => Promise<Uint8Array>
  readonly connect?: typeof connectWarden
}

interface OpenHow {
  readonly signal: AbortSignal
  readonly liners?: boolean
}

/** A driver and the channel, with nothing of an engine around them: no time, no output limit, no lifetime. */
export async function createDriverSubject(options: DriverSubjectOptions): Promise<Subject> {
  const { driver, host, root, connect = connectWarden } = options
  const probe = await driver.probe()
  return {
    name: `${driver.name} driver`,
    depth: 'driver',
    probe,
    host,
    open: async (input = {}, { signal = new AbortController().signal } = {}) => createSandbox(await open(parseSpec(input), { signal })),
    lined: async (input) => createSandbox(await open(parseSpec(input), { signal: new AbortController().signal, liners: true })),
  }

  async function open(spec: Spec, { signal, liners = false }: OpenHow): Promise<OpenSandbox> {
    signal.throwIfAborted()
    const cell = await driver
      .open({ id: newId(), root, limits: spec.limits, rootMode: spec.root, mounts: spec.mounts, commands: undefined, liners }, signal)
      .catch((error: unknown) => {
        signal.throwIfAborted()
        throw error
      })
    try {
      signal.throwIfAborted()
      const filter = probe.filtersSyscalls ? await options.filter() : undefined
      const warden = await connect(cell.channel, { signal, ...(filter && { filter }) })
      return { cell, warden, spec, root, probe, liners }
    } catch (error) {
      await cell.close()
      signal.throwIfAborted()
      throw error instanceof SandboxError ? new SandboxError(error.code, `${error.message} ${cell.diagnosis()}`) : error
    }
  }
}

function newId(): string {
  return randomBytes(10).toString('hex')
}

interface OpenSandbox {
  readonly cell: Cell
  readonly warden: Warden
  readonly spec: Spec
  readonly root: TemplateRoot
  readonly probe: Probe
  /** Each program has one. */
  readonly liners: boolean
}

function createSandbox(open: OpenSandbox): SubjectSandbox {
  return {
    run: async (command, { stdin, output: _, signal, ...options } = {}) => {
      const program = await start(open, command, { ...options, stdin: stdin !== undefined })
      signal?.addEventListener('abort', () => void program.kill())
      const result = await collect(program, stdin)
      return { ...result, usage: { ...result.usage, outputBytes: result.stdout.length + result.stderr.length } }
    },
    start: (command, options = {}) => start(open, command, options),
    pause: () => open.cell.pause(),
    resume: () => open.cell.resume(),
    exchange: async (port, bytes) => {
      const connection = await open.warden.connect(port)
      const sending = connection.write(bytes).then(() => connection.end())
      const pieces = []
      for await (const piece of connection.output) pieces.push(piece)
      await Promise.all([sending, connection.closed])
      return new Uint8Array(Buffer.concat(pieces))
    },
    files: filesOfCell(open),
    close: async () => {
      open.warden.close()
      await open.cell.close()
    },
  }
}

async function start({ cell, warden, spec, root, probe, liners }: OpenSandbox, command: Command, options: SubjectStartOptions): Promise<SubjectProcess> {
  const plan = (liners ? planLined : planRun)({ command, ...options }, spec)
  const user = cell.users.find(({ name }) => name === plan.user)
  if (!user) throw new SandboxError('unsupported', `the cell has no user ${plan.user}`)
  const run = cell.beginRun({ memoryBytes: undefined, processes: undefined })
  const request = countedIn(startRequest({ plan, user, cell, root, probe, limits: spec.limits }), run)
  const startedAt = performance.now()
  const result = await warden.start(request)
  if (result.started) return wrap(result.process, { run, startedAt })
  await run.close()
  if (result.stage !== 'exec') throw startError(result, request.cwd)
  return unstarted({ outcome: notStarted(result, { program: request.argv[0] ?? '' }), usage: nothingUsed, truncated: false })
}

/** What was printed is not counted here: a captured run knows it by what it kept. */
function wrap(process: WardenProcess, { run, startedAt }: { readonly run: CellRun; readonly startedAt: number }): SubjectProcess {
  const ended = process.exited.then((exit): Ending => {
    const outcome = outcomeOf({ exit, stop: undefined, memoryKills: undefined, memoryBytes: 0 })
    return { outcome, usage: usageOf({ exit, counts: run.usage(), wallMs: performance.now() - startedAt, outputBytes: 0 }), truncated: false }
  })
  const close = (): Promise<void> => run.close().catch(() => undefined)
  void ended.then(close, close)
  return {
    pid: process.pid,
    output: process.output,
    write: async (bytes) => void (await process.write(bytes)),
    endInput: () => process.endInput(),
    signal: async (name) => process.signal(signalNumber(name) ?? 0),
    kill: () => process.kill(),
    ended,
  }
}

async function* nothing(): AsyncGenerator<OutputEvent, void, undefined> {}

function unstarted(ending: Ending): SubjectProcess {
  const quiet = () => Promise.resolve()
  return { pid: 0, output: nothing(), write: quiet, endInput: quiet, signal: quiet, kill: quiet, ended: Promise.resolve(ending) }
}
