/** What the engine's process holds, and what it has on the machine. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { getHeapCodeStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { newTraces, traceHost } from '../../dist/bench/index.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')
const leastRounds = 4
const mostRounds = 40

/** After one collection, which leaves what was to be told of its end before it goes. */
export function memoryNow() {
  collect()
  const { heapUsed, heapTotal, external } = process.memoryUsage()
  const { code_and_metadata_size: machineCode, bytecode_and_metadata_size: bytecode } = getHeapCodeStatistics()
  return { rssBytes: residentBytes(), heapBytes: heapUsed, codeBytes: machineCode + bytecode, heapTotalBytes: heapTotal, externalBytes: external }
}

/** After as many collections as find something, each with a turn of the event loop after it: what is told of its end goes with the next. */
export async function memoryHeld() {
  let held = memoryNow()
  for (let round = 0; round < mostRounds; round += 1) {
    await sleep(50)
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    const now = memoryNow()
    if (now.heapBytes > held.heapBytes * 0.999 && round >= leastRounds) return now
    held = now
  }
  return held
}

function residentBytes() {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'latin1'))[1]) * 1024
}

export const descriptorCount = () => readdirSync('/proc/self/fd').length

/** By what they lead to, so that two sockets are two of a kind. */
function descriptors() {
  return readdirSync('/proc/self/fd')
    .flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/self/fd/${fd}`).replace(/^(\w+):\[\d+\]$/, '$1')]
      } catch {
        // The one that the folder was read by.
        return []
      }
    })
    .sort()
}

export function holdings(snapshotDir) {
  return { traces: traceHost(), descriptors: descriptors(), snapshots: readdirSync(snapshotDir, { recursive: true }).length }
}

/** One line for each thing that is there now and was not before. */
export function leftOf(before, after) {
  const traces = Object.entries(newTraces(before.traces, after.traces)).flatMap(([kind, lines]) => lines.map((line) => `${kind}: ${line}`))
  const known = [...before.descriptors]
  const more = after.descriptors.filter((each) => {
    const at = known.indexOf(each)
    if (at >= 0) known.splice(at, 1)
    return at < 0
  })
  const files = after.snapshots - before.snapshots
  return [...traces, ...more.map((each) => `descriptor: ${each}`), ...(files > 0 ? [`files: ${files} more where snapshots are kept`] : [])]
}
