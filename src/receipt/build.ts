import type { Receipt, ReceiptControl, UnsignedReceipt } from '../contract/receipt.js'
import { canonicalJson, presentable } from '../contract/canonical-json.js'
import { hashOf } from './hash.js'
import type { Look, ReceiptFacts } from './facts.js'
import { judge, mismatchError } from './judge.js'
import { limitControlsOf } from './limit-controls.js'
import { observedControls } from './observed-controls.js'
import { wishControlsOf, wishesObserved } from './wish-controls.js'

/**
 * The receipt of what holds. The same facts make the same receipt. Throws SandboxError('not-enforced') when a posture is not as demanded: there is no
 * receipt of that.
 */
export function buildReceipt(facts: ReceiptFacts): UnsignedReceipt {
  for (const look of [facts.cell, ...facts.programs]) refuseMismatch(look)
  const { info, machine, probe } = facts
  const { id, state, createdAt, spec } = info
  // What is on a disk says nothing of what was enforced.
  const { diskBytes: _, ...usage } = facts.usage
  const receipt: UnsignedReceipt = {
    schema: 'glovebox-receipt/1',
    sandbox: {
      id,
      ...(info.tenant !== undefined && { tenant: info.tenant }),
      ...(spec.name !== undefined && { name: spec.name }),
      ...(spec.agent !== undefined && { agent: spec.agent }),
    },
    issuedAt: facts.issuedAt,
    createdAt,
    ...(state !== 'closed' && { state }),
    glovebox: machine.version,
    host: { kernel: machine.kernel, arch: machine.arch },
    driver: { name: probe.driver, tier: probe.tier, facts: { ...probe.facts } },
    template: spec.template,
    ...(info.templateId !== undefined && { templateId: info.templateId }),
    ...(info.imageDigest !== undefined && { imageDigest: info.imageDigest }),
    ...(spec.from !== undefined && { from: spec.from }),
    ...facts.made,
    specHash: hashOf(spec),
    policies: facts.policies.map(({ name, defaults, ceiling, onExceed }) => ({ name, hash: hashOf({ defaults, ceiling, onExceed }), onExceed })),
    clamped: info.clamped.map(({ field, asked, given, policy }) => ({ field, asked, given, by: policy })),
    controls: [...limitControlsOf(facts), ...wishControlsOf(facts), ...observedControls(facts, wishesObserved)].map((control) => withCap(control, facts)),
    ...(facts.cellReadAt !== undefined && { cellReadAt: facts.cellReadAt }),
    inspected: { ...facts.inspected },
    runs: facts.runs.map(roundRun),
    usage: roundTimes(usage),
  }
  return presentable(receipt) as UnsignedReceipt
}

function refuseMismatch({ expectations, postures }: Look): void {
  const error = mismatchError(judge({ expectations, posture: postures }))
  if (error) throw error
}

/** What was asked for is not what was given: the receipt says by whom. */
function withCap(control: ReceiptControl, { info }: ReceiptFacts): ReceiptControl {
  const cap = control.subject === 'cell' ? info.clamped.find(({ field }) => field.replace(/^limits\./, 'limit.') === control.control) : undefined
  if (!cap) return control
  const lowered = `${canonicalJson(presentable(cap.asked))} was asked for, and lowered by policy ${cap.policy}`
  return { ...control, why: control.why === undefined ? lowered : `${control.why}; ${lowered}` }
}

function roundRun(run: Receipt['runs'][number]): Receipt['runs'][number] {
  return run.usage === undefined ? run : { ...run, usage: roundTimes(run.usage) }
}

/** To the microsecond, which is all that a clock can mean. */
function roundTimes<Times extends object>(times: Times): Times {
  const round = (name: string, value: unknown): unknown => (name.endsWith('Ms') && typeof value === 'number' ? Math.round(value * 1000) / 1000 : value)
  return Object.fromEntries(Object.entries(times).map(([name, value]) => [name, round(name, value)])) as Times
}
