import type { Signature } from '../contract/receipt.js'

/** How heads and checkpoints are signed and judged; handed in by whoever has the key of receipts. */
export interface Signing {
  sign<Document extends object>(unsigned: Document): Document & { readonly signature: Signature }
  /** What is wrong with a signature by our own key; undefined when nothing is. */
  readonly problemOf: (document: { readonly signature: Signature }) => string | undefined
}
