import type { KeyObject } from 'node:crypto'
import { canonicalJson } from '../contract/canonical-json.js'
import { SandboxError } from '../contract/errors.js'
import { type Receipt, receiptSchema, type UnsignedReceipt } from '../contract/receipt.js'
import { documentSigner, signatureProblem } from './signature.js'

/** `trusted` only when the key is one that was handed in; an intact receipt by an unknown key says nothing about who made it. */
export type Verification =
  | { readonly valid: true; readonly keyId: string; readonly trusted: boolean; readonly receipt: Receipt }
  | { readonly valid: false; readonly why: string }

export function signReceipt(unsigned: UnsignedReceipt, privateKey: KeyObject): Receipt {
  return documentSigner(privateKey)(unsigned)
}

/** With a key given, only a receipt by that key is valid. Never throws, whatever it is given. */
export function verifyReceipt(receipt: unknown, options: { readonly publicKey?: KeyObject } = {}): Verification {
  try {
    return check(receipt, options.publicKey)
  } catch (error) {
    return { valid: false, why: error instanceof SandboxError ? error.message : 'it cannot be read' }
  }
}

function check(input: unknown, expectedKey: KeyObject | undefined): Verification {
  // What is verified is a copy: nothing that answers differently when asked again gets past this.
  const parsed = receiptSchema.safeParse(JSON.parse(canonicalJson(input)))
  if (!parsed.success) return { valid: false, why: schemaProblem(parsed.error.issues[0]) }
  const receipt = parsed.data
  const why = signatureProblem(receipt, expectedKey)
  return why === undefined ? { valid: true, keyId: receipt.signature.keyId, trusted: expectedKey !== undefined, receipt } : { valid: false, why }
}

function schemaProblem(issue: { readonly path: readonly PropertyKey[]; readonly message: string } | undefined): string {
  if (issue === undefined) return 'it is no receipt'
  return issue.path.length === 0 ? `it is no receipt: ${issue.message}` : `${issue.path.map(String).join('.')}: ${issue.message}`
}
