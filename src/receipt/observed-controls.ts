import type { Evidence, Expectation, Observation, Posture } from '../contract/posture.js'
import { limitControls, type ReceiptControl } from '../contract/receipt.js'
import type { Look, ProgramLook, ReceiptFacts } from './facts.js'

/** What is looked at of every program. */
const programControls = ['capabilities', 'descriptors', 'filter', 'ids', 'no-new-privs', 'placement', 'rlimits', 'seccomp'] as const
export const noProgramYet = 'no program has started yet'

export function verdictOf(evidence: Evidence): 'proven' | 'told' | 'asserted' {
  if (evidence === 'runtime') return 'told'
  return evidence === 'asserted' ? 'asserted' : 'proven'
}

/** The most telling observation of a control: one that proves something before one that does not. */
export function observationOf({ postures }: Look, control: string): Observation | undefined {
  const seen = postures.flatMap(({ observations }) => observations.filter((each) => each.control === control))
  return seen.find(({ evidence }) => verdictOf(evidence) === 'proven') ?? seen[0]
}

/** Everything that was observed and is not told under a limit's name or a wish's. */
export function observedControls(facts: ReceiptFacts, toldElsewhere: readonly string[]): ReceiptControl[] {
  const elsewhere = new Set([...limitControls, ...toldElsewhere])
  const cell = facts.cell.postures.flatMap((posture) => controlsOf(posture, facts.cell.expectations, posture.subject))
  const programs = facts.programs.length === 0 ? programControls.map(notYet) : facts.programs.flatMap(controlsOfProgram)
  return [...cell, ...programs].filter(({ control }) => !elsewhere.has(control))
}

function controlsOfProgram({ run, postures, expectations }: ProgramLook): ReceiptControl[] {
  return postures.flatMap((posture) => controlsOf(posture, expectations, posture.subject.replace(/^pid \d+/, `run ${run.number}`)))
}

function controlsOf({ observations }: Posture, expectations: readonly Expectation[], subject: string): ReceiptControl[] {
  const sorted = observations.toSorted((a, b) => (a.control < b.control ? -1 : 1))
  return sorted.map(({ control, value, evidence, source }) => {
    const requested = expectations.find((each) => each.control === control)?.value ?? null
    return { control, subject, requested, stated: 'default', enforced: value, evidence, source, verdict: verdictOf(evidence) }
  })
}

function notYet(control: string): ReceiptControl {
  return { control, subject: 'programs', requested: null, stated: 'default', enforced: null, evidence: 'asserted', source: noProgramYet, verdict: 'asserted' }
}
