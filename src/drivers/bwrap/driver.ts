import { once as eventOf } from 'node:events'
import type { Cell, CellSpec, CellUsage, Driver, Probe } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import { type CellRecords, createCellRecords } from '../../sys/cell-records.js'
import { nativeProgram } from '../../sys/native.js'
import { argumentsOf, findProcesses, killProcess } from '../../sys/processes.js'
import { type SpawnedProcess, spawnProcess } from '../../sys/spawn.js'
import { createUidRanges, type UidRanges } from '../../sys/uid-ranges.js'
import { type CellCgroups, type CellIds, cellArgv, cellVariable, guestUsers } from './arguments.js'
import { BwrapCell, endProcess } from './cell.js'
import { bwrapPath, readHostFacts } from './facts.js'
import { canMapRanges } from './judgement.js'
import { probeHost } from './probe.js'

/** The cgroups of one cell. */
export interface OpenCgroups extends CellCgroups {
  usage(): Promise<CellUsage>
  /** When no process of the cell is left. */
  remove(): Promise<void>
}

/** What holds memory and CPU limits, where there is something. */
export interface Cgroups {
  /** What it can hold on this machine, found by trying. */
  limits(): Promise<Partial<Probe['limits']>>
  open(spec: CellSpec): Promise<OpenCgroups>
}

export interface BwrapDriverOptions {
  readonly cgroups?: Cgroups
  /** Where records of running cells are kept; the state place unless told otherwise. */
  readonly rangesFolder?: string
  readonly recordsFolder?: string
}

/** Whatever was taken for a cell, in the order to give it back. */
interface Lease {
  readonly ids: CellIds
  release(): void
}

type Lessor = (cellId: string) => Lease

export function createBwrapDriver(options: BwrapDriverOptions = {}): Driver {
  let probed: Promise<Probe> | undefined
  let lessor: Promise<Lessor> | undefined
  const open = async (spec: CellSpec, signal: AbortSignal): Promise<Cell> => {
    signal.throwIfAborted()
    lessor ??= createLessor(options)
    const lease = await lessor
    signal.throwIfAborted()
    return openCell({ spec, signal, lease: lease(spec.id), cgroups: options.cgroups })
  }
  return {
    name: 'bwrap',
    tier: 'process',
    probe() {
      probed ??= probeHost({ open, ...(options.cgroups === undefined ? {} : { cgroupLimits: options.cgroups.limits }) })
      return probed
    },
    open,
  }
}

async function createLessor(options: BwrapDriverOptions): Promise<Lessor> {
  if (canMapRanges(await readHostFacts())) {
    const ranges: UidRanges = createUidRanges(options.rangesFolder === undefined ? {} : { folder: options.rangesFolder })
    return (cellId) => {
      const { base, size, release } = ranges.claim(cellId)
      return { ids: { kind: 'range', base, size }, release }
    }
  }
  const records: CellRecords = createCellRecords({ sweep: killRemains, ...(options.recordsFolder === undefined ? {} : { folder: options.recordsFolder }) })
  return (cellId) => ({ ids: { kind: 'single' }, release: records.claim(cellId).release })
}

/** bwrap's processes carry the cell's id in their arguments until they become the warden, and a warden ends with its channel. */
function killRemains(cellId: string): void {
  const remains = findProcesses((pid) => {
    const argv = argumentsOf(pid)
    return argv[argv.indexOf(cellVariable) + 1] === cellId
  })
  for (const pid of remains) killProcess(pid)
}

interface Opening {
  readonly spec: CellSpec
  readonly signal: AbortSignal
  readonly lease: Lease
  readonly cgroups: Cgroups | undefined
}

async function openCell({ spec, signal, lease, cgroups }: Opening): Promise<Cell> {
  let group: OpenCgroups | undefined
  let process: SpawnedProcess | undefined
  const release = async (): Promise<void> => {
    try {
      await group?.remove()
    } finally {
      lease.release()
    }
  }
  try {
    group = await cgroups?.open(spec)
    process = await spawnCell(spec, lease.ids, group)
    await greeting(process, signal)
    const usage = group?.usage ?? (async () => ({ oomKills: undefined }))
    return new BwrapCell({ process, users: guestUsers(lease.ids), usage, release })
  } catch (error) {
    if (process) await endProcess(process, { graceMs: 0 })
    process?.channel.destroy()
    await release()
    throw error
  }
}

function spawnCell(spec: CellSpec, ids: CellIds, cgroups: CellCgroups | undefined): Promise<SpawnedProcess> {
  const bwrap = bwrapPath()
  if (bwrap === undefined) throw new SandboxError('unavailable', 'the program bwrap is not installed', { hint: 'glovebox doctor' })
  const programs = { launcher: nativeProgram('launcher'), bwrap, warden: nativeProgram('warden') }
  return spawnProcess(cellArgv({ spec, ids, programs, ownerPid: globalThis.process.pid, ...(cgroups === undefined ? {} : { cgroups }) }), { cwd: '/', env: {} })
}

/** Resolves when the warden's first bytes are there to be read, which are left for whoever connects to it. */
async function greeting(process: SpawnedProcess, signal: AbortSignal): Promise<void> {
  const { channel } = process
  const settled = new AbortController()
  const once = { signal: settled.signal }
  channel.ref()
  try {
    await Promise.race([rejectOnAbort(signal, settled.signal), eventOf(channel, 'readable', once), eventOf(channel, 'close', once)])
    // At its end a stream is readable too, with nothing to read.
    if (channel.readableLength === 0) throw await openFailure(process)
  } finally {
    settled.abort()
    channel.unref()
  }
}

function rejectOnAbort(signal: AbortSignal, settled: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true, signal: settled })
  })
}

/** bwrap and launcher fail because of the machine; a warden because of the cell. */
async function openFailure(process: SpawnedProcess): Promise<SandboxError> {
  const end = await process.wait()
  const said = process.diagnosis().split('\n').at(-1) ?? ''
  const how = end.signal === null ? `status ${end.code}` : `signal ${end.signal}`
  const code = /^(bwrap|launcher):/.test(said) ? 'unavailable' : 'broken'
  return new SandboxError(code, said === '' ? `the cell ended with ${how} before it was ready` : `the cell did not open: ${said}`, { hint: 'glovebox doctor' })
}
