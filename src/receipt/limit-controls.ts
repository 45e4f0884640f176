import type { DriverLimit } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import { type LimitName, limitNames, type Limits } from '../contract/limit-words.js'
import type { Json, Observation, Posture } from '../contract/posture.js'
import type { ReceiptControl } from '../contract/receipt.js'
import { isObject, isSame } from './difference.js'
import { type ReceiptFacts, statedBy } from './facts.js'
import { noProgramYet, observationOf, verdictOf } from './observed-controls.js'

const valueOf: { readonly [Name in LimitName]: (limits: Limits) => number | undefined } = {
  memory: ({ memoryBytes }) => memoryBytes,
  cpus: ({ cpus }) => cpus,
  cpuTime: ({ cpuTimeMs }) => cpuTimeMs,
  time: ({ timeMs }) => timeMs,
  disk: ({ diskBytes }) => diskBytes,
  inodes: ({ inodes }) => inodes,
  fileSize: ({ fileSizeBytes }) => fileSizeBytes,
  openFiles: ({ openFiles }) => openFiles,
  processes: ({ processes }) => processes,
  readRate: ({ readBytesPerSecond }) => readBytesPerSecond,
  writeRate: ({ writeBytesPerSecond }) => writeBytesPerSecond,
  output: ({ outputBytes }) => outputBytes,
}

/** Where the kernel holds each process to it, this is the name among `rlimits`. */
const rlimitNames: Partial<Record<LimitName, string>> = { fileSize: 'fileSize', openFiles: 'files', processes: 'processes' }

type Finding = Pick<ReceiptControl, 'enforced' | 'evidence' | 'source' | 'verdict' | 'why'>

/** One control for every limit there is, whoever enforces it. */
export function limitControlsOf(facts: ReceiptFacts): ReceiptControl[] {
  return limitNames.map((name) => {
    const requested = valueOf[name](facts.info.spec.limits) ?? null
    const stated = statedBy(facts, `limits.${name}`)
    return { control: `limit.${name}`, subject: 'cell', requested, stated, ...findingOf(name, requested, facts) }
  })
}

function findingOf(name: LimitName, requested: number | null, facts: ReceiptFacts): Finding {
  const observation = observationOf(facts.cell, `limit.${name}`)
  const unenforced = facts.info.unenforced.find(({ limit }) => limit === name)
  if (unenforced) return notEnforced(unenforced.why, observation)
  if (requested === null && (observation?.value ?? null) === null) return notAsked(observation)
  if (observation && observation.evidence !== 'asserted') return observed(observation, { name, requested, facts })
  if (rlimitNames[name] === undefined) return ofEngine(name, requested, facts) ?? (observation ? asFound(observation) : claimed(name, requested, facts))
  const ofPrograms = ofProgram(name, requested, facts) ?? (observation ? asFound(observation) : claimed(name, requested, facts))
  return withLiving(ofPrograms, { name, requested, facts })
}

function notEnforced(why: string, observation: Observation | undefined): Finding {
  const { evidence, source } = observation ?? { evidence: 'asserted' as const, source: 'nothing enforces it here' }
  return { enforced: null, evidence, source, verdict: 'not-enforced', why }
}

function notAsked(observation: Observation | undefined): Finding {
  const { evidence, source } = observation ?? { evidence: 'asserted' as const, source: 'nobody asked for it' }
  return { enforced: null, evidence, source, verdict: 'not-asked' }
}

function asFound({ value, evidence, source }: Observation): Finding {
  return { enforced: value, evidence, source, verdict: verdictOf(evidence) }
}

interface Wanted {
  readonly name: LimitName
  readonly requested: number | null
  readonly facts: ReceiptFacts
}

/** What a driver demands of the kernel may be rounded; where it demands nothing, only the very number that was asked for will do. */
function observed(observation: Observation, { name, requested, facts }: Wanted): Finding {
  const isJudged = facts.cell.expectations.some(({ control }) => control === `limit.${name}`)
  if (!isJudged && requested !== null && !isSame(observation.value, requested)) {
    throw new SandboxError('not-enforced', `limit.${name} of cell: is ${JSON.stringify(observation.value)} instead of ${requested}`, {
      hint: 'glovebox doctor',
    })
  }
  return asFound(observation)
}

function ofEngine(name: LimitName, requested: number | null, { probe, info }: ReceiptFacts): Finding | undefined {
  const claim = (source: string): Finding => ({ enforced: requested, evidence: 'asserted', source, verdict: 'asserted' })
  if (name === 'time') return claim("the engine's timer")
  // As runs are planned: what nobody stated or capped holds only what is kept.
  if (name === 'output') return claim(`the engine's count of what ${info.spec.limits.stated.includes('output') ? '' : 'captured '}runs print`)
  if (name !== 'cpuTime') return undefined
  return claim(`the engine's timer${probe.limits.cpuTime.enforced ? `, and ${probe.limits.cpuTime.by}` : ''}`)
}

/** From the program that was looked at last: what every program is held to by itself. */
function ofProgram(name: LimitName, requested: number | null, facts: ReceiptFacts): Finding | undefined {
  const key = rlimitNames[name]
  if (key === undefined || requested === null) return undefined
  for (const { run, ...look } of facts.programs.toReversed()) {
    const rlimits = observationOf(look, 'rlimits')
    const hard = rlimits && hardLimit(rlimits.value, key)
    // A program that was started before the limit was lowered says nothing about the next one.
    if (rlimits === undefined || hard === undefined || hard > requested) continue
    return { enforced: hard, evidence: rlimits.evidence, source: `${rlimits.source}, of run ${run.number}`, verdict: verdictOf(rlimits.evidence) }
  }
  return undefined
}

/** What was started before a limit was lowered keeps what it has: while it lives, nothing holds all of the cell to the limit. */
function withLiving(finding: Finding, { name, requested, facts }: Wanted): Finding {
  const { processes: forks } = facts.probe.limits
  // Where something else counts processes, none of them has such a limit of its own.
  if (name === 'processes' && !(forks.enforced && forks.rlimit)) return finding
  const key = rlimitNames[name] ?? name
  const rows = facts.living.map((posture) => ({ subject: posture.subject, hard: hardLimitIn(posture, key) }))
  const largest = Math.max(...rows.map(({ hard }) => hard ?? 0), typeof finding.enforced === 'number' ? finding.enforced : 0)
  const older = requested === null ? [] : rows.filter(({ hard }) => hard !== undefined && hard > requested)
  if (older.length === 0) return finding.verdict === 'proven' ? { ...finding, enforced: largest } : finding
  const processes = older.filter(({ subject }) => !subject.includes('thread')).length
  const who =
    processes === 1 ? 'a process that was started before it was lowered still has' : `${processes} processes that were started before it was lowered still have`
  return {
    enforced: Number.isFinite(largest) ? largest : null,
    evidence: 'asserted',
    source: finding.source,
    verdict: 'asserted',
    why: `${who} ${Number.isFinite(largest) ? `up to ${largest}` : 'no limit'}`,
  }
}

function hardLimitIn(posture: Posture, key: string): number | undefined {
  const row = rowOf(observationOf({ expectations: [], postures: [posture] }, 'rlimits')?.value ?? null, key)
  return row === 'unlimited' ? Number.POSITIVE_INFINITY : typeof row === 'number' ? row : undefined
}

function hardLimit(rlimits: Json, key: string): number | undefined {
  const hard = rowOf(rlimits, key)
  return typeof hard === 'number' ? hard : undefined
}

/** The hard limit as it is told: a number, or `unlimited`. */
function rowOf(rlimits: Json, key: string): unknown {
  const row = isObject(rlimits) ? rlimits[key] : undefined
  return Array.isArray(row) ? (row as readonly unknown[])[1] : undefined
}

function claimed(name: LimitName, requested: number | null, facts: ReceiptFacts): Finding {
  const enforcement = facts.probe.limits[name as DriverLimit]
  if (!enforcement.enforced) return notEnforced(enforcement.why, undefined)
  const isOfPrograms = rlimitNames[name] !== undefined
  const when = facts.programs.length === 0 ? noProgramYet : 'no program has started since it was changed'
  return { enforced: requested, evidence: 'asserted', source: isOfPrograms ? `${enforcement.by}; ${when}` : enforcement.by, verdict: 'asserted' }
}
