import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect } from 'vitest'
import { buildReceipt, formatReceipt, signReceipt } from '../../src/receipt/index.js'
import { testUnless } from '../unless.js'
import { facts, privateKey, publicKey } from './facts.js'

const folder = mkdtempSync(join(tmpdir(), 'gbx-elsewhere-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The block of the page that tells how to verify with tools that know nothing of us. */
function snippetOf(page: string): string {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8')
  const [, code] = /```sh\n(python3[\s\S]*?openssl[\s\S]*?)```/.exec(text) ?? []
  if (code === undefined) throw new Error(`docs/${page} no longer has it`)
  return code
}

function verifyElsewhere(text: string) {
  writeFileSync(join(folder, 'receipt.json'), text)
  writeFileSync(join(folder, 'key.pem'), publicKey.export({ type: 'spki', format: 'pem' }))
  const { status, stdout } = spawnSync('sh', ['-c', snippetOf('receipts.md')], { cwd: folder, encoding: 'utf8' })
  return { ok: status === 0, stdout }
}

const hasTools = ['python3 --version', "openssl version | grep -q 'OpenSSL 3'"].every((command) => spawnSync('sh', ['-c', command]).status === 0)

describe('without anything of ours', () => {
  testUnless(!hasTools && 'needs python3 and OpenSSL 3')('a receipt is verified with OpenSSL as the page says, and a changed one is not', () => {
    const text = formatReceipt(signReceipt(buildReceipt(facts), privateKey))
    expect(verifyElsewhere(text)).toEqual({ ok: true, stdout: 'Signature Verified Successfully\n' })
    expect(verifyElsewhere(text.replace('"tier": "process"', '"tier": "vm"')).ok).toBe(false)
  })
})
