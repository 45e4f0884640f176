import { createHash } from 'node:crypto'
import { verifyExport } from '../../../src/audit/export.js'
import { canonicalJson } from '../../../src/contract/canonical-json.js'
import { type FuzzTarget, holds, textIn, unlessRefusedLater } from '../target.js'

const signature = { algorithm: 'ed25519', keyId: 'k', publicKey: 'p', value: 'v' }
const record = (number: number, previous: string): { readonly text: string; readonly hash: string } => {
  const body = { number, at: '2026-01-01T00:00:00.000Z', previous, act: 'create', who: {}, what: {} }
  const hash = createHash('sha256').update(canonicalJson(body)).digest('hex')
  return { text: JSON.stringify({ ...body, hash }), hash }
}
const first = record(1, '0'.repeat(64))
const second = record(2, first.hash)
const head = JSON.stringify({ number: 2, hash: second.hash, at: '2026-01-01T00:00:00.000Z', signature })

async function* linesIn(text: string): AsyncGenerator<string> {
  for (const line of text.split('\n')) yield await Promise.resolve(line)
}

/** Exports of the audit trail: any lines are judged, none is believed, and with a signature that is wrong nothing is valid. */
export const target: FuzzTarget = {
  name: 'audit-export',
  most: 3000,
  seeds: [
    `{"record":${first.text}}\n{"record":${second.text}}\n{"head":${head}}`,
    `{"checkpoint":{"number":1,"hash":"${first.hash}","signature":${JSON.stringify(signature)}}}\n{"record":${second.text}}\n{"head":${head}}`,
    '{"head":null}',
    `{"record":${first.text}}\n{"head":null}`,
  ],
  async run(bytes) {
    const text = textIn(bytes)
    for (const problem of [undefined, 'it is signed by nobody']) {
      const verified = await unlessRefusedLater(() => verifyExport({ lines: linesIn(text), problemOf: () => problem, trusted: false }))
      if (!verified) continue
      if (verified.valid) holds(problem === undefined || verified.records === 0, 'with a wrong signature no record is valid')
      else holds(verified.why !== '' && verified.number >= 0, 'what is not valid is told, and where')
    }
  },
}
