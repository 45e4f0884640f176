import { readlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { HostSnapshot, HostView } from '../conformance/index.js'
import { nativeProgram } from '../sys/native.js'
import { statePlace } from '../sys/places.js'
import { plantCanaries } from './canaries.js'
import { recordInvariants } from './host-invariants.js'
import { type HostViewOptions, listCgroups, listDescriptors, listMounts, listProcesses, takeFiles } from './host-lists.js'
import { lookAtProcesses } from './process-facts.js'

/*
 * The machine as it is seen from the process of the engine, which is the process that calls this. What other engines on the same
 * machine do is kept out: records and temporary files count when they bear this process's name or lie in folders of its own.
 */

export interface PlantedHostView extends HostView, AsyncDisposable {}

const namespaceKinds = ['pid', 'net', 'mnt', 'ipc', 'uts', 'user', 'cgroup']

export async function createHostView(options: HostViewOptions): Promise<PlantedHostView> {
  const planted = await plantCanaries()
  return {
    canaries: planted.canaries,
    namespaces: Object.fromEntries(namespaceKinds.map((kind) => [kind, readlinkSync(`/proc/self/ns/${kind}`)])),
    snapshot: () => Promise.resolve(takeSnapshot(options, planted.canaries.process.pid)),
    readFile: async (path) => {
      await readFile(path)
    },
    availableMemoryBytes: async () => Number(/^MemAvailable:\s*(\d+) kB/m.exec(await readFile('/proc/meminfo', 'utf8'))?.[1]) * 1024,
    look: (which) => Promise.resolve(lookAtProcesses(which)),
    prober: async () => {
      try {
        return await readFile(nativeProgram('prober'))
      } catch {
        return undefined
      }
    },
    invariants: () => recordInvariants(options),
    [Symbol.asyncDispose]: planted.remove,
  }
}

function takeSnapshot(options: HostViewOptions, canaryPid: number): HostSnapshot {
  return {
    processes: listProcesses(canaryPid),
    mounts: listMounts(options),
    cgroups: listCgroups(),
    files: takeFiles(options),
    descriptors: listDescriptors(),
  }
}

/** Where engines of this user keep their records: this one's bear its process's id. */
export function stateFolders(): string[] {
  return [statePlace()]
}
