import { once as eventOf } from 'node:events'
import type { Cell, CellSpec, CellUsage } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import { nativeProgram } from '../../sys/native.js'
import { type SpawnedProcess, spawnProcess } from '../../sys/spawn.js'
import { cellArgv, guestUsers } from './arguments.js'
import { BwrapCell, endProcess } from './cell.js'
import { bwrapPath } from './facts.js'
import type { Lease } from './lease.js'

export interface Opening {
  readonly spec: CellSpec
  readonly lease: Lease
  readonly signal: AbortSignal
  readonly unveilable: ReadonlySet<string>
}

/** A cell whose warden has begun to speak. Whatever keeps it from that, the lease is released and nothing of the cell is left. */
export async function openCell(opening: Opening): Promise<Cell> {
  const { lease, signal } = opening
  let process: SpawnedProcess | undefined
  try {
    signal.throwIfAborted()
    process = await spawnCell(opening)
    await greeting(process, signal)
    const usage = () => usageOf(lease)
    return new BwrapCell({ process, users: guestUsers(lease.ids), usage, remains: lease.remains, release: lease.release })
  } catch (error) {
    if (process) await endProcess(process, lease.remains)
    await lease.release()
    throw error
  }
}

function usageOf({ cgroup }: Lease): CellUsage {
  const counted = cgroup?.usage()
  return {
    cpuMs: counted?.cpuMs,
    memoryBytes: undefined,
    memoryPeakBytes: counted?.memoryPeakBytes,
    processes: undefined,
    processesPeak: counted?.processesPeak,
    hits: { memory: counted?.oomKills, processes: counted?.processHits },
  }
}

function spawnCell({ spec, lease, unveilable }: Opening): Promise<SpawnedProcess> {
  const { ids, cgroup } = lease
  const bwrap = bwrapPath()
  if (bwrap === undefined) throw new SandboxError('unavailable', 'the program bwrap is not installed', { hint: 'glovebox doctor' })
  const programs = { launcher: nativeProgram('launcher'), bwrap, warden: nativeProgram('warden') }
  return spawnProcess(cellArgv({ spec, ids, programs, ownerPid: process.pid, unveilable, ...(cgroup && { cgroups: cgroup }) }), { cwd: '/', env: {} })
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
