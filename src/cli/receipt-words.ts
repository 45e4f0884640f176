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
  return escapeControls(Array.isArray(value) ? listInWords(value as readonly Json[]) : partInWords(value))
}

function partInWords(value: Json): string {
  if (value === null) return nothing
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value !== 'object') return String(value)
  if (Array.isArray(value)) return pairInWords(value as readonly Json[])
  return membersInWords(value as { readonly [name: string]: Json })
}

/** `1000:1000` for ids, `/data ro` for a mount, `all own` where all say the same; else the names with their values. */
function membersInWords(value: { readonly [name: string]: Json }): string {
  const { uid, gid, target, mode } = value
  if (typeof uid === 'number' && typeof gid === 'number') return `${uid}:${gid}`
  if (typeof target === 'string' && typeof mode === 'string') return `${target} ${mode}`
  const parts = Object.entries(value).map(([name, member]) => [name, partInWords(member)] as const)
  const [first] = parts
  if (first && parts.length > 2 && parts.every(([, words]) => words === first[1])) return `all ${first[1]}`
  return parts.map(([name, words]) => `${name} ${words}`).join(', ')
}

/** The soft and the hard limit are mostly the same. */
function pairInWords(list: readonly Json[]): string {
  const words = list.map(partInWords)
  return words.length === 2 && words[0] === words[1] ? (words[0] ?? '') : words.join(' ') || 'none'
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

const mostListed = 3

function listInWords(list: readonly Json[]): string {
  if (list.length === 0) return 'none'
  const isLong = list.length > mostListed && list.some((item) => typeof item === 'object')
  return isLong ? `${list.length} of them` : list.map(partInWords).join(', ')
}

/** What was enforced, beside what was requested: only what that does not say already. */
export function enforcedInWords({ control, requested, enforced }: ReceiptControl): string {
  if (requested === null || enforced === null) return valueInWords(control, enforced)
  if (JSON.stringify(requested) === JSON.stringify(enforced)) return 'the same'
  return includes(enforced, requested) ? 'the same, and more' : valueInWords(control, enforced)
}

function includes(value: Json, part: Json): boolean {
  if (typeof value !== 'object' || typeof part !== 'object' || value === null || part === null || Array.isArray(value) || Array.isArray(part)) return false
  const whole = value as { readonly [name: string]: Json }
  return Object.entries(part).every(([name, member]) => Object.hasOwn(whole, name) && JSON.stringify(whole[name]) === JSON.stringify(member))
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
