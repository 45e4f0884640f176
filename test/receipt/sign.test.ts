import { createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalJson } from '../../src/contract/canonical-json.js'
import { buildReceipt, formatReceipt, keyIdOf, parseReceiptText, signReceipt, verifyReceipt } from '../../src/receipt/index.js'
import { facts, keyFrom, privateKey, publicKey } from './facts.js'

const receipt = signReceipt(buildReceipt(facts), privateKey)
const text = formatReceipt(receipt)
const changed = 'the signature does not fit: something was changed'

/** A copy in which anything may be exchanged. */
function copy(): Record<string, never> & { signature: Record<string, string>; [name: string]: unknown } {
  return structuredClone(receipt) as never
}

/** As a file would be judged: read strictly, then verified. */
function isValidFile(bytes: Uint8Array): boolean {
  try {
    return verifyReceipt(parseReceiptText(bytes)).valid
  } catch {
    return false
  }
}

describe('a signed receipt', () => {
  test('is valid, and trusted only by a key that was handed in', () => {
    const keyId = keyIdOf(publicKey)
    expect(verifyReceipt(receipt)).toEqual({ valid: true, keyId, trusted: false, receipt })
    expect(verifyReceipt(receipt, { publicKey })).toEqual({ valid: true, keyId, trusted: true, receipt })
  })

  test('is not valid for whoever expects another signer', () => {
    const other = createPublicKey(keyFrom(8))
    expect(verifyReceipt(receipt, { publicKey: other })).toEqual({ valid: false, why: `it is signed by key ${keyIdOf(publicKey)}, not by ${keyIdOf(other)}` })
  })

  test('is valid after it was written, read, and written by others', () => {
    const texts = [text, text.trimEnd(), JSON.stringify(receipt), `${JSON.stringify(receipt, undefined, 4)}\n`, canonicalJson(receipt)]
    expect(texts.map((each) => isValidFile(Buffer.from(each)))).toEqual([true, true, true, true, true])
  })

  test('is no more valid once any byte of its file is another', () => {
    const bytes = Buffer.from(text)
    expect(isValidFile(bytes)).toBe(true)
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const other = Buffer.from(bytes)
        other[at] = (other[at] ?? 0) ^ flip
        expect(isValidFile(other)).toBe(false)
      }),
      { numRuns: 500 },
    )
  })

  test('is no more valid once any value in it is another', () => {
    const paths = pathsOf(receipt)
    expect(paths.length).toBeGreaterThan(300)
    fc.assert(
      fc.property(fc.constantFrom(...paths), fc.jsonValue(), (path, value) => {
        const other = copy()
        fc.pre(exchange(other, path, value))
        expect(verifyReceipt(other).valid).toBe(false)
      }),
      { numRuns: 500 },
    )
  })

  test('is no more valid once something is added to it or taken from it', () => {
    for (const path of pathsOf(receipt)) {
      const less = copy()
      remove(less, path)
      expect([path, verifyReceipt(less).valid]).toEqual([path, false])
    }
    expect(verifyReceipt({ ...receipt, more: 1 })).toEqual({ valid: false, why: 'it is no receipt: Unrecognized key: "more"' })
    expect(verifyReceipt({ ...receipt, signature: { ...receipt.signature, more: 1 } })).toMatchObject({ valid: false })
  })
})

describe('what stands beside a signature', () => {
  test('is signed too: neither the key nor its id can be exchanged', () => {
    const { publicKey: stranger } = generateKeyPairSync('ed25519')
    const spki = stranger.export({ type: 'spki', format: 'der' }).toString('base64')
    const withKey = (signature: object) => verifyReceipt({ ...receipt, signature: { ...receipt.signature, ...signature } })
    expect(withKey({ publicKey: spki })).toEqual({ valid: false, why: 'signature.keyId: is not that of the key' })
    expect(withKey({ publicKey: spki, keyId: keyIdOf(stranger) })).toEqual({ valid: false, why: changed })
    expect(withKey({ keyId: '0'.repeat(16) })).toEqual({ valid: false, why: 'signature.keyId: is not that of the key' })
    expect(withKey({ algorithm: 'none' })).toMatchObject({ valid: false })
  })

  test('is needed: a signature of the rest alone is none', () => {
    const { signature, ...unsigned } = receipt
    const value = sign(null, Buffer.from(canonicalJson(unsigned)), privateKey).toString('base64')
    expect(verifyReceipt({ ...receipt, signature: { ...signature, value } })).toEqual({ valid: false, why: changed })
  })

  test.each([
    ['another spelling of its base64', (value: string) => value.replace(/=+$/, '')],
    ['bits that base64 does not use', (value: string) => value.replace(/.==$/, (end) => `${String.fromCharCode(end.charCodeAt(0) + 1)}==`)],
    ['a byte too many', (value: string) => Buffer.concat([Buffer.from(value, 'base64'), Buffer.alloc(1)]).toString('base64')],
    ['nothing', () => ''],
  ])('has one form: %s is refused', (_, twist) => {
    const other = copy()
    const value = twist(receipt.signature.value)
    expect(value).not.toBe(receipt.signature.value)
    other.signature = { ...receipt.signature, value }
    expect(verifyReceipt(other).valid).toBe(false)
  })

  test('is no other kind of key', () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ type: 'spki', format: 'der' })
    const trailing = Buffer.concat([Buffer.from(receipt.signature.publicKey, 'base64'), Buffer.alloc(1)])
    for (const der of [rsa, trailing, Buffer.from('no key')]) {
      const signature = { ...receipt.signature, publicKey: der.toString('base64') }
      expect(verifyReceipt({ ...receipt, signature })).toEqual({ valid: false, why: 'signature.publicKey: is no Ed25519 public key' })
    }
  })
})

describe('what is no receipt', () => {
  test.each([undefined, null, 1, 'x', [], {}, new Date(), new Map(), { signature: {} }, () => 1, Symbol('x'), 1n])(
    '%o is not valid, and nothing is thrown',
    (value) => {
      expect(verifyReceipt(value).valid).toBe(false)
    },
  )

  test('an object that answers differently when asked again is judged by what it answered once', () => {
    let asked = 0
    const shifty = {
      ...receipt,
      get glovebox() {
        return asked++ === 0 ? '0.1.0' : 'forged'
      },
    }
    expect(verifyReceipt(shifty)).toMatchObject({ valid: true, receipt: { glovebox: '0.1.0' } })
  })
})

describe('the text of a receipt', () => {
  test.each([
    ['a key that occurs twice', text.replace('"schema"', '"template": "x",\n  "schema"')],
    ['the same key twice with one value', text.replace('"glovebox": "0.1.0",', '"glovebox": "0.1.0",\n  "glovebox": "0.1.0",')],
    ['another spelling of a number', text.replace('"runs": 1,', '"runs": 1.0,')],
    ['another spelling of a letter', text.replace('"python"', '"\\u0070ython"')],
    ['a space', text.replace('"python"', ' "python"')],
    ['a line more', `${text}\n`],
    ['a mark at the start', `\ufeff${text}`],
  ])('is not read with %s', (_, other) => {
    expect(other).not.toBe(text)
    expect(() => parseReceiptText(Buffer.from(other))).toThrow(expect.objectContaining({ code: 'invalid' }))
  })

  test('is not read when it is not UTF-8, or not JSON', () => {
    expect(() => parseReceiptText(Buffer.from([0x22, 0xff, 0x22]))).toThrow('it is not UTF-8')
    expect(() => parseReceiptText(Buffer.from('receipt'))).toThrow('it is not JSON')
  })
})

type Path = readonly (string | number)[]

/** Where every value in it is, those that hold others included. */
function pathsOf(value: unknown, path: Path = []): Path[] {
  const below = typeof value === 'object' && value !== null ? Object.entries(value).flatMap(([name, member]) => pathsOf(member, [...path, name])) : []
  return path.length === 0 ? below : [path, ...below]
}

function holderOf(value: object, path: Path): [Record<string, unknown>, string] {
  const holder = path.slice(0, -1).reduce<unknown>((each, name) => (each as Record<string, unknown>)[name], value)
  return [holder as Record<string, unknown>, String(path.at(-1))]
}

/** False when it was that value before. */
function exchange(value: object, path: Path, other: unknown): boolean {
  const [holder, name] = holderOf(value, path)
  const isOther = canonicalJson(holder[name]) !== JSON.stringify(other)
  holder[name] = other
  return isOther
}

function remove(value: object, path: Path): void {
  const [holder, name] = holderOf(value, path)
  if (Array.isArray(holder)) holder.splice(Number(name), 1)
  else Reflect.deleteProperty(holder, name)
}
