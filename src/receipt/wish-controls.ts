import { SandboxError } from '../contract/errors.js'
import { type Network, networkInJson } from '../contract/network.js'
import type { Json, Observation } from '../contract/posture.js'
import type { ReceiptControl } from '../contract/receipt.js'
import type { Mount, Spec } from '../contract/spec.js'
import { hashOf } from './hash.js'
import { isObject } from './difference.js'
import { type ReceiptFacts, statedBy } from './facts.js'
import { noProgramYet, observationOf, verdictOf } from './observed-controls.js'

/** Told here whoever observed them. */
export const wishesObserved = ['commands'] as const

const unlooked = 'nobody could be asked'

type Asked = Pick<ReceiptControl, 'requested' | 'stated'>
type Finding = Pick<ReceiptControl, 'enforced' | 'evidence' | 'source' | 'verdict' | 'why'>

/** What a spec asks for besides limits, each with what was found of it. */
export function wishControlsOf(facts: ReceiptFacts): ReceiptControl[] {
  const { spec } = facts.info
  const asked = (field: string, requested: Json): Asked => ({ requested, stated: statedBy(facts, field) })
  return [
    wish('tier', asked('minTier', spec.minTier), told(facts.probe.tier, `driver ${facts.probe.driver}`)),
    wish('lifetime', asked('lifetime', spec.lifetimeMs), asserted(spec.lifetimeMs, "the engine's timer")),
    wish('user', asked('user', spec.user), userFinding(facts)),
    wish('root', asked('root', spec.root), rootFinding(spec, facts)),
    wish('host-paths', asked('mounts', spec.mounts.map(toJson)), mountsFinding(spec.mounts, facts)),
    wish('commands', asked('commands', spec.commands ?? null), commandsFinding(spec, facts)),
    wish('network', asked('network', networkInJson(spec.network)), networkFinding(spec.network, facts)),
    wish('seccomp-profile', asked('seccomp', profileOf(spec)), filterFinding(facts)),
    wish('environment', asked('env', Object.keys(spec.env).sort()), environmentFinding(facts)),
  ]
}

function wish(control: string, asked: Asked, finding: Finding): ReceiptControl {
  return { control, subject: 'cell', ...asked, ...finding }
}

function told(enforced: Json, source: string): Finding {
  return { enforced, evidence: 'runtime', source, verdict: 'told' }
}

function asserted(enforced: Json, source: string): Finding {
  return { enforced, evidence: 'asserted', source, verdict: 'asserted' }
}

function by({ evidence, source }: Observation, enforced: Json): Finding {
  return { enforced, evidence, source, verdict: verdictOf(evidence) }
}

/** What nobody observed is claimed by a driver that isolates, and not there without one. */
function unobserved(enforced: Json, facts: ReceiptFacts, source = unlooked): Finding {
  if (facts.probe.isolates) return asserted(enforced, source)
  return { enforced: null, evidence: 'asserted', source, verdict: 'not-enforced', why: `driver ${facts.probe.driver} isolates nothing` }
}

function userFinding(facts: ReceiptFacts): Finding {
  const program = facts.programs.at(-1)
  if (!program) return asserted(facts.info.spec.user, noProgramYet)
  const ids = observationOf(program, 'ids')
  if (!ids || !isObject(ids.value)) return unobserved(program.run.user, facts)
  return by(
    { ...ids, source: `${ids.source}, of run ${program.run.number}` },
    { name: program.run.user, uid: ids.value.uid ?? null, gid: ids.value.gid ?? null },
  )
}

function rootFinding(spec: Spec, facts: ReceiptFacts): Finding {
  const mounts = observationOf(facts.cell, 'mounts')
  const top = mounts && rowsAt(mounts.value, '/').at(-1)
  if (!mounts || !top) return unobserved(spec.root, facts)
  const found = top.access === 'ro' ? 'readonly' : 'overlay'
  if (mounts.evidence !== 'asserted' && found !== spec.root) throw notAsAsked(`root of cell: is ${found} instead of ${spec.root}`)
  return by(mounts, found)
}

function mountsFinding(asked: readonly Mount[], facts: ReceiptFacts): Finding {
  const mounts = observationOf(facts.cell, 'mounts')
  if (!mounts) return unobserved(asked.map(toJson), facts)
  const found = asked.map(({ target, mode }) => {
    const row = rowsAt(mounts.value, target).at(-1)
    const found = mode === 'overlay' && row?.type === 'overlay' && row.access === 'rw' ? 'overlay' : (row?.access ?? null)
    if (mounts.evidence !== 'asserted' && found !== mode) throw notAsAsked(`host-paths of cell: ${target} is ${JSON.stringify(found)} instead of ${mode}`)
    return { target, mode: found }
  })
  const finding = by(mounts, found)
  return asked.length === 0 ? finding : { ...finding, why: 'that a target shows its source is what the driver says; the kernel was asked for the rest' }
}

function commandsFinding({ commands }: Spec, facts: ReceiptFacts): Finding {
  const tried = [...facts.programs.toReversed(), facts.cell].map((look) => observationOf(look, 'commands')).find((observation) => observation !== undefined)
  if (tried) return by(tried, tried.value)
  if (commands === undefined) return { enforced: null, evidence: 'asserted', source: 'nobody asked for it', verdict: 'not-asked' }
  return unobserved(commands, facts)
}

/** Without a way out there is nothing but loopback to be found; with one, each connection is decided on the host, which no kernel can be asked about. */
function networkFinding(network: Network, facts: ReceiptFacts): Finding {
  const interfaces = observationOf(facts.cell, 'interfaces')
  if (network !== false) return unobserved(networkInJson(network), facts, 'egress on the host decides about each connection')
  return interfaces ? by(interfaces, false) : unobserved(false, facts)
}

/** By its hash when it was given as it is, by its path when it was named. */
function profileOf({ seccomp }: Spec): Json {
  if (seccomp === undefined) return 'default'
  return typeof seccomp === 'string' ? { file: seccomp } : { hash: hashOf(seccomp) }
}

function filterFinding(facts: ReceiptFacts): Finding {
  const program = facts.programs.find((look) => observationOf(look, 'filter') !== undefined)
  const filter = program && observationOf(program, 'filter')
  if (filter)
    return by(
      { ...filter, source: `${filter.source}, of run ${program.run.number}` },
      filter.value === null ? profileOf(facts.info.spec) : { filter: filter.value },
    )
  return unobserved(profileOf(facts.info.spec), facts, facts.programs.length === 0 ? noProgramYet : unlooked)
}

function environmentFinding(facts: ReceiptFacts): Finding {
  const program = facts.programs.at(-1)
  if (!program) return asserted(null, noProgramYet)
  return asserted([...program.run.environment].sort(), `what the engine handed to run ${program.run.number}, names only`)
}

function rowsAt(mounts: Json, target: string): { readonly [key: string]: Json }[] {
  const rows = Array.isArray(mounts) ? (mounts as readonly Json[]) : []
  return rows.filter(isObject).filter((row) => row.target === target)
}

function toJson({ source, target, mode }: Mount): Json {
  return { source, target, mode }
}

function notAsAsked(message: string): SandboxError {
  return new SandboxError('not-enforced', message, { hint: 'glovebox doctor' })
}
