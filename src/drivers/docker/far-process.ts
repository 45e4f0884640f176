/** Processes of a cell on another machine, as a teller in its container tells them. */
import type { Observation, Posture } from '../../contract/posture.js'
import { closesOnExec } from '../../sys/posture/descriptors.js'
import { namespaceNames, type Namespaces } from '../../sys/posture/namespaces.js'
import { isGone } from '../../sys/posture/proc-files.js'
import { describeProcess, type ProcessFacts, type Surroundings } from '../../sys/posture/process-posture.js'
import { parseStatus } from '../../sys/posture/process-status.js'
import type { Teller } from './teller.js'

/** Both are read there: whatever is told, the engine's machine and our program on it are believed. */
const toldBy = 'by our launcher in the container, through the container engine'

/** The same, told by whoever built the cell rather than read here. */
export function asTold({ subject, observations }: Posture): Posture {
  const told = (each: Observation): Observation => (each.evidence === 'kernel' ? { ...each, evidence: 'runtime', source: `${each.source}, ${toldBy}` } : each)
  return { subject, observations: observations.map(told) }
}

export async function pidsOf(teller: Teller): Promise<readonly number[]> {
  return (await teller.list('/proc/')).filter((name) => /^\d+$/.test(name)).map(Number)
}

async function namespacesOf(teller: Teller, who: number | string): Promise<Namespaces> {
  const links = await Promise.all(namespaceNames.map(async (name) => [name, await teller.link(`/proc/${who}/ns/${name}`)] as const))
  return Object.fromEntries(links) as Namespaces
}

export async function factsOf(teller: Teller, who: number | string): Promise<ProcessFacts> {
  const [text, namespaces] = await Promise.all([teller.read(`/proc/${who}/status`), namespacesOf(teller, who)])
  return { status: parseStatus(text), namespaces }
}

export async function observeFarProcess(teller: Teller, who: number | string, surroundings: Surroundings): Promise<Observation[]> {
  const [facts, limits, uidMap, gidMap] = await Promise.all([
    factsOf(teller, who),
    ...['limits', 'uid_map', 'gid_map'].map((file) => teller.read(`/proc/${who}/${file}`)),
  ])
  const texts = { limits, uid_map: uidMap, gid_map: gidMap }
  return describeProcess({ facts, read: (file) => texts[file] as string }, surroundings)
}

export async function observeFarDescriptors(teller: Teller, pid: number): Promise<Observation> {
  const numbers = (await teller.list(`/proc/${pid}/fdinfo`)).map(Number)
  const kept = await Promise.all(
    numbers.map(async (number) => {
      const text = await whileThere(teller.read(`/proc/${pid}/fdinfo/${number}`))
      return text !== undefined && !closesOnExec(text) ? [number] : []
    }),
  )
  const value = kept.flat().sort((one, other) => one - other)
  return { control: 'descriptors', value, evidence: 'kernel', source: '/proc/PID/fdinfo' }
}

/** Undefined when what it is about is gone. */
export async function whileThere<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}
