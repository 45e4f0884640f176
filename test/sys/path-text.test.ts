import fc from 'fast-check'
import { expect, test } from 'vitest'
import { pathBytes, pathText, wellFormed } from '../../src/contract/path-text.js'

test('any bytes come back from the text that they became, also by way of JSON', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => new TextEncoder().encode(text)),
  )
  fc.assert(
    fc.property(fc.array(bytes, { maxLength: 4 }), (parts) => {
      const all = Uint8Array.from(parts.flatMap((part) => [...part]))
      const text = pathText(all)
      expect(pathBytes(text)).toEqual(all)
      expect(pathBytes(JSON.parse(JSON.stringify(text)) as string)).toEqual(all)
      expect(wellFormed(text)).not.toMatch(/[\ud800-\udfff]/u)
    }),
  )
})

test('text stays as it is, and other bytes neither become a slash nor merge with what is beside them', () => {
  expect(pathText(Buffer.from('a/ü/😀/\ufeff'))).toBe('a/ü/😀/\ufeff')
  expect(pathText(Uint8Array.of(0x61, 0xff, 0x2f, 0xc3, 0x28))).toBe('a\udcff/\udcc3(')
  expect(pathText(Buffer.concat([Buffer.from('😀'), Uint8Array.of(0x80)]))).toBe('😀\udc80')
  expect(wellFormed('caf\udce9')).toBe('caf\ufffd')
})
