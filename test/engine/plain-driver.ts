import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type {
  Bystander,
  Cell,
  CellRun,
  CellSpec,
  CellUsage,
  Driver,
  Enforcement,
  PostureSubject,
  Probe,
  RunCounts,
  RunLimits,
  TemplateRoot,
} from '../../src/contract/driver.js'
import type { Limits } from '../../src/contract/limits.js'
import type { Expectation, Posture } from '../../src/contract/posture.js'
import { Engine } from '../../src/engine/engine.js'
import type { EngineOptions } from '../../src/engine/engine-options.js'
import { Standstill } from '../../src/drivers/fake/standstill.js'
import { processorTimeBelow } from '../../src/sys/processor-time.js'
import { engineParts } from './engine-parts.js'
import { nativeProgram } from '../../src/sys/native.js'
import { joinStdio } from '../../src/sys/stdio-channel.js'

const loose: Enforcement = { enforced: false, why: 'there are no walls' }

const absent = { available: false, why: 'there are no walls' } as const

export const plainProbe: Probe = {
  driver: 'plain',
  tier: 'process',
  available: true,
  obstacles: [],
  limits: {
    memory: loose,
    cpus: loose,
    cpuTime: loose,
    disk: loose,
    inodes: loose,
    fileSize: loose,
    openFiles: loose,
    processes: loose,
    readRate: loose,
    writeRate: loose,
  },
  features: {
    commands: absent,
    'mounts-ro': absent,
    'mounts-overlay': absent,
    'mounts-rw': absent,
    'root-overlay': absent,
    liners: absent,
    pause: { available: true },
    network: absent,
    'direct-network': absent,
  },
  users: { user: { available: true }, root: { available: false, why: 'there is one id here' } },
  filtersSyscalls: false,
  isolates: false,
  facts: {},
}

const hostRoot: TemplateRoot = { name: 'host', binds: [], symlinks: [], shell: '/bin/sh', env: { FROM_TEMPLATE: 'yes' } }

const nothingCounted: RunCounts = { cpuMs: undefined, memoryPeakBytes: undefined, processesPeak: undefined, hits: { memory: undefined, processes: undefined } }

/** The real warden without walls, whose cells a test can count, kill and hold up, and which tell of runs and kernels what a test wants them to. */
export class PlainDriver implements Driver {
  readonly name = 'plain'
  readonly tier = 'process'
  readonly cells: PlainCell[] = []
  probeResult: Probe = plainProbe
  probes = 0
  /** Awaited before and after a cell is opened. */
  gate: () => Promise<unknown> = () => Promise.resolve()
  /** Whether what is said to a warden may be said before its cell is open. */
  tellsEarly = false
  /** What is handed out in the place of a cell. */
  handsOut: (cell: Cell) => Cell = (cell) => cell
  /** What each run is told to have used. */
  counts: () => Partial<RunCounts> = () => ({})
  /** Whether ended runs are told to have left something behind. */
  isPopulated: () => boolean = () => false
  expects: readonly Expectation[] = []
  posture: (subject: PostureSubject) => Promise<readonly Posture[]> = () => Promise.resolve([])
  limit: (limits: Limits) => Promise<void> = () => Promise.resolve()
  closeFailures = 0
  /** Awaited before a cell stands still. */
  pause: () => Promise<unknown> = () => Promise.resolve()
  argv: () => readonly [string, ...string[]] = () => [nativeProgram('warden'), '--subreaper']

  probe(): Promise<Probe> {
    this.probes += 1
    return Promise.resolve(this.probeResult)
  }

  async open(spec: CellSpec, signal: AbortSignal): Promise<Cell> {
    await this.gate()
    signal.throwIfAborted()
    const folder = await mkdtemp(join(tmpdir(), 'gbx-plain-'))
    const [program, ...args] = this.argv()
    const child = spawn(program, args, { stdio: 'pipe', env: {} })
    const cell = new PlainCell({ driver: this, spec, child, folder })
    this.cells.push(cell)
    if (this.tellsEarly) spec.onLaunched?.(cell)
    await this.gate()
    return this.handsOut(cell)
  }

  /** Cells of which something is left. */
  get openCells(): number {
    return this.cells.filter((cell) => !cell.isClosed).length
  }
}

interface CellParts {
  readonly driver: PlainDriver
  readonly spec: CellSpec
  readonly child: ChildProcess & { stdin: NonNullable<ChildProcess['stdin']>; stdout: NonNullable<ChildProcess['stdout']> }
  readonly folder: string
}

export class PlainCell implements Cell {
  readonly channel
  readonly users = [{ name: 'user', uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, home: '/home/user', capabilities: 0n } as const]
  readonly workdir: string
  readonly layers = []
  readonly child: ChildProcess
  readonly #driver: PlainDriver
  readonly #exited: Promise<unknown>
  #said = ''
  readonly #standstill: Standstill
  readonly spec: CellSpec
  readonly expects: readonly Expectation[]
  /** What each run was begun with, and the limits the cell was given later. */
  readonly runs: RunLimits[] = []
  readonly changes: Limits[] = []
  openRuns = 0
  /** Runs that were told to count from when they were given a program. */
  countedAnew = 0
  isClosed = false

  constructor({ driver, spec, child, folder }: CellParts) {
    this.#driver = driver
    this.spec = spec
    this.expects = driver.expects
    this.child = child
    this.#standstill = new Standstill(child.pid as number)
    this.workdir = folder
    this.channel = joinStdio(child)
    this.#exited = once(child, 'close')
    child.stderr?.on('data', (bytes: Buffer) => {
      this.#said += bytes.toString()
    })
    child.unref()
    ;(child.stderr as unknown as { unref(): void }).unref()
  }

  diagnosis(): string {
    return this.#said
  }

  usage(): Promise<CellUsage> {
    return Promise.resolve({ ...nothingCounted, ...this.#driver.counts(), memoryBytes: undefined, processes: undefined })
  }

  beginRun(limits: RunLimits): CellRun {
    this.runs.push(limits)
    this.openRuns += 1
    let isOpen = true
    return {
      group: undefined,
      usage: () => ({ ...nothingCounted, ...this.#driver.counts() }),
      countFromNow: () => {
        this.countedAnew += 1
      },
      isPopulated: () => this.#driver.isPopulated(),
      spareTime: () => undefined,
      close: () => {
        if (isOpen) this.openRuns -= 1
        isOpen = false
        return Promise.resolve()
      },
    }
  }

  async limit(limits: Limits): Promise<void> {
    await this.#driver.limit(limits)
    this.changes.push(limits)
  }

  posture(subject: PostureSubject): Promise<readonly Posture[]> {
    return this.#driver.posture(subject)
  }

  worked(): number | undefined {
    return processorTimeBelow(this.child.pid as number)
  }

  async pause(besides: readonly Bystander[] = []): Promise<void> {
    await this.#driver.pause()
    await this.#standstill.begin(besides.map(({ pid }) => pid))
  }

  resume(): Promise<void> {
    this.#standstill.end()
    return Promise.resolve()
  }

  async close(): Promise<void> {
    if (this.#driver.closeFailures > 0) {
      this.#driver.closeFailures -= 1
      throw new Error('the cell would not close')
    }
    this.channel.ref()
    this.child.ref()
    this.child.kill('SIGCONT')
    this.channel.end()
    await this.#exited
    await rm(this.workdir, { recursive: true, force: true })
    this.isClosed = true
  }
}

export function createPlainEngine(driver: PlainDriver, options: Partial<EngineOptions> = {}): Engine {
  const templates = { resolve: () => Promise.resolve(hostRoot) }
  return new Engine({ ...engineParts(), drivers: [driver], templates, filter: () => Promise.resolve(new Uint8Array()), ...options })
}
