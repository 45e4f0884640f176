import { SandboxError } from '../contract/errors.js'
import type { SandboxInfo, SandboxUsage } from '../contract/platform.js'
import type { Origins } from '../contract/policy.js'
import type { ReceiptRun } from '../contract/receipt.js'
import type { RunRequest } from '../contract/run.js'
import type { PlannedSandbox } from '../policy/apply.js'
import type { MadeHome } from './live-cell.js'
import type { LiveSandbox } from './live-sandbox.js'
import type { PoolItem } from './pool.js'
import type { Retell } from './receipt-now.js'
import type { ZygoteOrder } from './zygote.js'

export interface LinedParts {
  readonly sandbox: LiveSandbox
  readonly home: MadeHome
  /** Undefined: none is needed. */
  readonly zygote: () => ZygoteOrder | undefined
  /** There should be a zygote, and is none. */
  readonly onFailure: (error: unknown) => void
}

/** A cell in which runs have liners, one after another. No program of a guest's runs in it outside of one. */
export class LinedCell implements PoolItem {
  readonly sandbox: LiveSandbox
  readonly home: MadeHome
  readonly ended: Promise<unknown>
  readonly templateId: string | undefined
  readonly #zygote: () => ZygoteOrder | undefined
  readonly #onFailure: (error: unknown) => void
  /** It was ready before its run was asked for. */
  hasWaited = false
  /** How many runs it had, and has. */
  runs = 0

  constructor({ sandbox, home, zygote, onFailure }: LinedParts) {
    this.sandbox = sandbox
    this.home = home
    this.ended = home.open.warden.ended
    this.templateId = home.root.id
    this.#zygote = zygote
    this.#onFailure = onFailure
  }

  get isAlive(): boolean {
    return this.sandbox.over === undefined
  }

  async ensureZygote(signal?: AbortSignal): Promise<void> {
    const order = this.#zygote()
    if (order) await this.sandbox.ensureZygote(order, signal)
  }

  /** Without a zygote runs take longer, and are the same; a template without Python needs none. */
  async rest(): Promise<void> {
    this.hasWaited = true
    await this.ensureZygote().catch((error: unknown) => {
      if (!(error instanceof SandboxError && error.code === 'unsupported')) this.#onFailure(error)
    })
  }

  async close(): Promise<void> {
    await this.sandbox.close()
  }
}

const monthMs = 30 * 86_400_000

/** The cell outlives each of its runs, and has nothing of theirs. */
export function hostPlan(planned: PlannedSandbox): PlannedSandbox {
  const { name: _name, agent: _agent, cwd: _cwd, ...spec } = planned.spec
  return { ...planned, spec: { ...spec, metadata: {}, env: {}, lifetimeMs: monthMs, idleMs: undefined, onExpiry: 'close' } }
}

/** The run with what its sandbox would have brought. It does not run for longer than that would have lived. */
export function linedRequest(request: RunRequest, { spec }: PlannedSandbox): RunRequest {
  const { env: own = {}, cwd = spec.cwd, timeout, ...rest } = request
  const isObject = typeof own === 'object' && (own as unknown) !== null
  const env = isObject ? { ...spec.env, ...own } : own
  // What says nothing is left out, so that most requests are as plain as they came.
  const says = !isObject || Reflect.ownKeys(env).length > 0
  const bounded = timeout ?? (spec.lifetimeMs < spec.limits.timeMs ? spec.lifetimeMs : undefined)
  return { ...rest, ...(says && { env }), ...(cwd !== undefined && { cwd }), ...(bounded !== undefined && { timeout: bounded }) }
}

export function isPython(command: unknown): boolean {
  return Array.isArray(command) && typeof command[0] === 'string' && /(^|\/)python3?$/.test(command[0])
}

interface OwnStory {
  readonly info: SandboxInfo
  readonly origins: Origins
}

/** What a receipt tells of one run alone: nothing of those that had liners in its cell before, but what was looked at of their programs. */
export function retoldOf({ info, origins }: OwnStory): Retell {
  return ({ runs, usage, programs, ...rest }) => {
    const own = runs.slice(-1)
    const number = own[0]?.number
    return {
      ...rest,
      info: { ...info, state: rest.info.state },
      origins,
      made: { fresh: 'liner', pooled: true },
      runs: own,
      usage: usageOf(own[0], usage),
      programs: programs.map((look) => (look.run.number === number ? look : { ...look, run: { ...look.run, environment: [] } })),
    }
  }
}

function usageOf(run: ReceiptRun | undefined, cell: SandboxUsage): SandboxUsage {
  const { memoryBytes, processes, diskBytes } = cell
  const {
    cpuUserMs = 0,
    cpuSystemMs = 0,
    wallMs = 0,
    memoryPeakBytes = 0,
    processesPeak = null,
    readBytes = 0,
    writtenBytes = 0,
    outputBytes = 0,
  } = run?.usage ?? {}
  const hits = run?.usage?.hits ?? { memory: null, processes: null }
  const peaks = { memoryPeakBytes, processesPeak }
  return { wallMs, cpuMs: cpuUserMs + cpuSystemMs, memoryBytes, processes, diskBytes, ...peaks, readBytes, writtenBytes, outputBytes, runs: 1, hits }
}
