import type { Probe } from '../contract/driver.js'
import type { Expectation, Posture } from '../contract/posture.js'
import type { SandboxInfo, SandboxUsage } from '../contract/platform.js'
import type { Receipt, ReceiptRun } from '../contract/receipt.js'

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
  readonly info: Pick<SandboxInfo, 'id' | 'createdAt' | 'spec' | 'unenforced' | 'clamped'>
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
}
