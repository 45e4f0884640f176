import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Cell, CellUsage, Driver, Enforcement, Probe, TemplateRoot } from '../../src/contract/driver.js'
import { Engine, type EngineOptions } from '../../src/engine/engine.js'
import { nativeProgram } from '../../src/sys/native.js'
import { joinStdio } from '../../src/sys/stdio-channel.js'

const loose: Enforcement = { enforced: false, why: 'there are no walls' }

export const plainProbe: Probe = {
  driver: 'plain',
  tier: 'process',
  available: true,
  obstacles: [],
  limits: { memory: loose, cpus: loose, disk: loose, processes: loose },
  users: { user: { available: true }, root: { available: false, why: 'there is one id here' } },
  filtersSyscalls: false,
  isolates: false,
  facts: {},
}

const hostRoot: TemplateRoot = { name: 'host', binds: [], symlinks: [], shell: '/bin/sh', env: { FROM_TEMPLATE: 'yes' } }

/** The real warden without walls, whose cells a test can count, kill, hold up, and give memory kills that never happened. */
export class PlainDriver implements Driver {
  readonly name = 'plain'
  readonly tier = 'process'
  readonly cells: PlainCell[] = []
  probeResult: Probe = plainProbe
  probes = 0
  /** Awaited before and after a cell is opened. */
  gate: () => Promise<unknown> = () => Promise.resolve()
  oomKills: () => number | undefined = () => undefined
  closeFailures = 0
  argv: () => readonly [string, ...string[]] = () => [nativeProgram('warden'), '--subreaper']

  probe(): Promise<Probe> {
    this.probes += 1
    return Promise.resolve(this.probeResult)
  }

  async open(_spec: unknown, signal: AbortSignal): Promise<Cell> {
    await this.gate()
    signal.throwIfAborted()
    const folder = await mkdtemp(join(tmpdir(), 'gbx-plain-'))
    const [program, ...args] = this.argv()
    const child = spawn(program, args, { stdio: 'pipe', env: {} })
    const cell = new PlainCell(this, child, folder)
    this.cells.push(cell)
    await this.gate()
    return cell
  }

  /** Cells of which something is left. */
  get openCells(): number {
    return this.cells.filter((cell) => !cell.isClosed).length
  }
}

export class PlainCell implements Cell {
  readonly channel
  readonly users = [{ name: 'user', uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, home: '/home/user', capabilities: 0n } as const]
  readonly workdir: string
  readonly child: ChildProcess
  readonly #driver: PlainDriver
  readonly #exited: Promise<unknown>
  #said = ''
  isClosed = false

  constructor(
    driver: PlainDriver,
    child: ChildProcess & { stdin: NonNullable<ChildProcess['stdin']>; stdout: NonNullable<ChildProcess['stdout']> },
    workdir: string,
  ) {
    this.#driver = driver
    this.child = child
    this.workdir = workdir
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
    return Promise.resolve({ oomKills: this.#driver.oomKills() })
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
  return new Engine({ drivers: [driver], templates: { resolve: () => Promise.resolve(hostRoot) }, filter: () => Promise.resolve(new Uint8Array()), ...options })
}
