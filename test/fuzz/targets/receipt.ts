import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { canonicalJson } from '../../../src/contract/canonical-json.js'
import { documentSigner, explainReceipt, formatReceipt, parseReceiptText, verifyReceipt } from '../../../src/receipt/index.js'
import { type FuzzTarget, holds, isSame, textIn, unlessRefused } from '../target.js'

const { privateKey } = generateKeyPairSync('ed25519')
const sign = documentSigner(createPrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' })))
const unsigned = {
  schema: 'glovebox-receipt/1',
  sandbox: { id: 'a'.repeat(20) },
  driver: 'bwrap',
  controls: [{ control: 'network', verdict: 'proven', demanded: 'none', found: 'none' }],
  runs: [],
}

/** Receipts: verifying never throws, a text that was taken is printed as it was, and one that was changed is not valid. */
export const target: FuzzTarget = {
  name: 'receipt',
  most: 4000,
  seeds: [
    `${JSON.stringify(sign(unsigned), undefined, 2)}\n`,
    JSON.stringify(sign({ ...unsigned, runs: [{ number: 1 }] })),
    '{"a":[1,2,{"b":null}]}',
    '"\\ud800"',
    '[1e400,-0,0.1]',
  ],
  run(bytes) {
    const value = unlessRefused(() => parseReceiptText(bytes))
    const verified = verifyReceipt(value)
    holds(verified.valid || verified.why !== '', 'what is not valid is told why')
    if (value === undefined) return
    const text = unlessRefused(() => canonicalJson(value))
    if (text !== undefined) isSame(canonicalJson(JSON.parse(text)), text, 'what is canonical stays so')
    if (!verified.valid) return
    explainReceipt(verified.receipt)
    isSame(JSON.parse(textIn(Buffer.from(formatReceipt(verified.receipt)))), value, 'a receipt that is printed is the same')
  },
}
