import type { Json } from '../contract/posture.js'
import type { ReceiptControl } from '../contract/receipt.js'
import type { Outcome } from '../contract/run.js'
import type { Verification } from '../receipt/index.js'
import { escapeControls } from './print.js'
import { bytesInWords, durationInWords } from './words.js'

/** A verification, and by whom when that is someone we know. */
export type Judgement = Verification & { readonly by?: string }

export interface SignatureWords {
  readonly text: string
  /** What to ask next, to be followed by the file. */
  readonly hint?: string
}

export function signatureInWords(judgement: Judgement): SignatureWords {
  if (!judgement.valid) return { text: `is not valid: ${judgement.why}` }
  if (judgement.trusted) return { text: `is as it was signed, by ${judgement.by ?? 'a known key'} (${judgement.keyId})` }
  return {
    text: `is intact, but signed by a key this machine does not know (${judgement.keyId}): that proves nothing about who made it`,
    hint: 'receipt verify --key SIGNER.pem',
  }
}

const nothing = '–'

/** A requested or enforced value in the words of its control, on one line. */
export function valueInWords(control: string, value: Json): string {
  if (value === null) return nothing
  if (typeof value === 'number') return quantityInWords(control, value)
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'string') return escapeControls(value)
  if (Array.isArray(value)) return listInWords(value as readonly Json[])
  const members = Object.entries(value).map(([name, member]) => `${name} ${typeof member === 'object' ? JSON.stringify(member) : String(member)}`)
  return escapeControls(members.join(', '))
}

const ofTime = new Set(['limit.time', 'limit.cpuTime', 'lifetime'])
const ofBytes = new Set(['limit.memory', 'limit.disk', 'limit.fileSize', 'limit.output'])
const ofRates = new Set(['limit.readRate', 'limit.writeRate'])

function quantityInWords(control: string, value: number): string {
  if (ofTime.has(control)) return durationInWords(value)
  if (ofBytes.has(control)) return bytesInWords(value)
  if (ofRates.has(control)) return `${bytesInWords(value)}/s`
  return String(value)
}

function listInWords(list: readonly Json[]): string {
  if (list.length === 0) return 'none'
  if (list.every((item) => typeof item === 'string' || typeof item === 'number')) return escapeControls(list.join(', '))
  return `${list.length} ${list.length === 1 ? 'row' : 'rows'}`
}

export function isUnchanged({ requested, enforced }: ReceiptControl): boolean {
  return requested !== null && JSON.stringify(requested) === JSON.stringify(enforced)
}

/** How a run ended, in a few words. */
export function outcomeInWords(outcome: Outcome | undefined): string {
  if (outcome === undefined) return 'was still running'
  switch (outcome.kind) {
    case 'exited':
      return `exited with ${outcome.code}`
    case 'signaled':
      return `ended by ${escapeControls(outcome.signal)}`
    case 'timed-out':
      return `timed out by ${outcome.by === 'cpu' ? 'processor' : 'wall'} time after ${durationInWords(outcome.limitMs)}`
    case 'out-of-memory':
      return `out of memory at ${bytesInWords(outcome.limitBytes)}`
    case 'output-limit':
      return `printed more than ${bytesInWords(outcome.limitBytes)}`
    case 'killed':
      return `killed: ${escapeControls(outcome.reason)}`
    case 'not-started':
      return `not started: ${escapeControls(outcome.reason)}`
  }
}
