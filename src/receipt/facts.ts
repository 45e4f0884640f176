import type { Probe } from '../contract/driver.js'
import type { Expectation, Posture } from '../contract/posture.js'
import type { Origins, PolicyLayer } from '../contract/policy.js'
import type { SandboxInfo, SandboxUsage } from '../contract/platform.js'
import type { Receipt, ReceiptControl, ReceiptRun } from '../contract/receipt.js'

/** What was demanded of something, and what was found when it was looked at. */
export interface Look {
  readonly expectations: readonly Expectation[]
  readonly postures: readonly Posture[]
}

/** The same of a program at its gate. */
export interface ProgramLook extends Look {
  readonly run: Pick<ReceiptRun, 'number' | 'user' | 'environment'>
}

/** All that a receipt is made of. */
export interface ReceiptFacts {
  /** With the limits that hold now. */
  readonly info: Pick<SandboxInfo, 'id' | 'tenant' | 'state' | 'createdAt' | 'spec' | 'templateId' | 'imageDigest' | 'unenforced' | 'clamped'>
  /** How new its cell was when it became somebody's, and whether it had been made before. */
  readonly made: Required<Pick<Receipt, 'fresh' | 'pooled'>>
  /** Who stated what. */
  readonly origins: Origins
  /** The operator's first. */
  readonly policies: readonly PolicyLayer[]
  readonly issuedAt: string
  readonly machine: { readonly version: string; readonly kernel: string; readonly arch: string }
  readonly probe: Pick<Probe, 'driver' | 'tier' | 'facts' | 'limits' | 'isolates'>
  /** Read when the receipt is issued. */
  readonly cell: Look
  /** The latest program whose posture was read in full, then the latest that was read in short, if there are such. */
  readonly programs: readonly ProgramLook[]
  /** In the order in which they were started. */
  readonly runs: readonly ReceiptRun[]
  readonly usage: SandboxUsage
  readonly inspected: Receipt['inspected']
  /** When the cell was read, if that was not for this receipt. */
  readonly cellReadAt?: string | undefined
  /** Every process and thread of the guest's that there was then. */
  readonly living: readonly Posture[]
}

/** Whoever stated what stands in a field; of what was lowered, the policy that lowered it. */
export function statedBy({ info, origins }: Pick<ReceiptFacts, 'info' | 'origins'>, field: string): ReceiptControl['stated'] {
  return info.clamped.some((each) => each.field === field) ? 'policy' : (origins[field] ?? 'default')
}
