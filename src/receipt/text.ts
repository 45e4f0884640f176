import { SandboxError } from '../contract/errors.js'
import type { Receipt } from '../contract/receipt.js'

/** As JSON.stringify, jq and most others write: in one line, or indented. */
const indents = [2, 0, '\t', 4] as const

/** The text of a receipt as we write it to a file. */
export function formatReceipt(receipt: Receipt): string {
  return `${JSON.stringify(receipt, undefined, 2)}\n`
}

/**
 * The value that a text holds. Throws SandboxError('invalid') unless it is UTF-8 and written as JSON usually is: a key that occurs twice, other spaces,
 * another spelling of a number or a letter all mean the same to a parser, and would let a file be changed without its signature noticing.
 */
export function parseReceiptText(bytes: Uint8Array): unknown {
  const text = decode(bytes)
  const value = parse(text)
  const body = text.endsWith('\n') ? text.slice(0, -1) : text
  if (indents.some((indent) => JSON.stringify(value, undefined, indent) === body)) return value
  throw refusal('it is not written as it was issued: a key occurs twice, or spaces, numbers or letters are spelled in another way')
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw refusal('it is not UTF-8')
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw refusal('it is not JSON')
  }
}

function refusal(problem: string): SandboxError {
  return new SandboxError('invalid', problem)
}
