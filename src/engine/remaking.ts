/** Another cell for a sandbox whose cell was put away: chosen, opened and looked at as the first was, and no weaker. */
import { SandboxError } from '../contract/errors.js'
import type { SandboxInfo } from '../contract/platform.js'
import type { Spec } from '../contract/spec.js'
import type { MadeHome } from './live-cell.js'
import { makeCellInTime, type Order, prepareCell, type Tools } from './making.js'

export interface RemakeOrder extends Order {
  /** Of the root that the first cell had. */
  readonly templateId: string | undefined
}

export interface Remade {
  readonly home: MadeHome
  readonly limits: Spec['limits']
  readonly unenforced: SandboxInfo['unenforced']
}

/** `planned` names the driver. Throws what creating such a sandbox would; then nothing of the cell is left. */
export async function remakeCell(order: RemakeOrder, tools: Tools, answerMs: number): Promise<Remade> {
  const { planned, signal } = order
  const preparation = await prepareCell(order, tools)
  refuseMoved(planned.spec, preparation.spec)
  refuseRebuilt(order, preparation.cell.root.id)
  signal.throwIfAborted()
  const made = await makeCellInTime(preparation, tools, { signal, answerMs })
  const { cell, choice, spec } = preparation
  return { home: { ...made, root: cell.root }, limits: spec.limits, unenforced: choice.unenforced }
}

/** What it was handed is what it was resolved to then: a link that lies in the way since leads to what nobody handed in. */
function refuseMoved(before: Spec, now: Spec): void {
  const moved = before.mounts.find(({ source }, index) => now.mounts[index]?.source !== source)
  if (moved) throw new SandboxError('conflict', `mounts: ${moved.source} leads elsewhere now than when the sandbox was created`)
}

/** What was written over files that are others now would be something that never was. */
function refuseRebuilt({ planned, templateId }: RemakeOrder, now: string | undefined): void {
  if (now === templateId) return
  throw new SandboxError('conflict', `template ${planned.spec.template} is not what it was when the sandbox was created; it was built again meanwhile`)
}
