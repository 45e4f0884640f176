/**
 * Paths as text that any bytes fit in: UTF-8, and each byte that is none as a lone surrogate, U+DC80 to U+DCFF. So they can be compared, divided and kept as
 * JSON, and give back exactly the bytes that they stand for.
 */
const escaped = 0xdc00
const loneByte = /[\udc80-\udcff]/u
const loneSurrogates = /[\ud800-\udfff]/gu

export function pathText(bytes: Uint8Array): string {
  return textOf(bytes) ?? pieceByPiece(bytes)
}

export function pathBytes(text: string): Uint8Array {
  const encoder = new TextEncoder()
  if (!loneByte.test(text)) return encoder.encode(text)
  return Uint8Array.from(
    Array.from(text, (character) => (loneByte.test(character) ? [character.charCodeAt(0) - escaped] : [...encoder.encode(character)])).flat(),
  )
}

/** As any reader of text takes it; what is no text is replaced. */
export function wellFormed(text: string): string {
  return text.replace(loneSurrogates, '\ufffd')
}

function pieceByPiece(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; ) {
    const length = [1, 2, 3, 4].find((size) => at + size <= bytes.length && textOf(bytes.subarray(at, at + size)) !== undefined)
    text += length === undefined ? String.fromCharCode(escaped + (bytes[at] ?? 0)) : (textOf(bytes.subarray(at, at + length)) ?? '')
    at += length ?? 1
  }
  return text
}

/** Undefined for what is no UTF-8. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
