/**
 * The first message of TLS, as far as it must be read to know for whom it is (RFC 8446 4.1.2, RFC 6066 3). Read strictly: every length must add up, and what
 * a server could read in another way is refused. It may come in several records, which a server puts together, and so do we.
 */
export type Hello =
  | { readonly kind: 'hello'; readonly serverName: string | undefined; readonly protocols: readonly string[] }
  /** Names nobody by design: the older way of encrypting the name. */
  | { readonly kind: 'hidden' }
  | { readonly kind: 'invalid'; readonly reason: string }

/** Far above what any client sends, keys against quantum computers included. */
const mostBytes = 64 * 1024
const types = { handshake: 0x16, clientHello: 1 }
const extensions = { serverName: 0, protocols: 16, hiddenName: 0xffce }
const mostRecord = 16_384
const mostRecords = 32

/** `'more'` when it is not complete. */
export function parseHello(bytes: Buffer): Hello | 'more' {
  try {
    const message = messageIn(bytes)
    if (message === 'more') return bytes.length > mostBytes ? { kind: 'invalid', reason: `its first message has more than ${mostBytes} bytes` } : 'more'
    return readHello(new Cursor(message))
  } catch (error) {
    if (error instanceof Malformed) return { kind: 'invalid', reason: error.message }
    throw error
  }
}

class Malformed extends Error {}

/** The handshake message, without its header, put together from records. */
function messageIn(bytes: Buffer): Buffer | 'more' {
  const parts: Buffer[] = []
  let length = 0
  for (let at = 0; ; ) {
    const whole = Buffer.concat(parts)
    if (whole.length >= 4) {
      if (whole[0] !== types.clientHello) throw new Malformed('it does not begin with a ClientHello')
      length = whole.readUIntBE(1, 3)
      if (length > mostBytes) throw new Malformed(`its first message has more than ${mostBytes} bytes`)
      if (whole.length >= 4 + length) return wholeMessage(whole, length)
    }
    if (parts.length === mostRecords) throw new Malformed(`its first message comes in more than ${mostRecords} records`)
    if (bytes.length < at + 5) return 'more'
    const recordLength = bytes.readUInt16BE(at + 3)
    if (bytes[at] !== types.handshake || bytes[at + 1] !== 3) throw new Malformed('a record of it is no TLS handshake')
    if (recordLength === 0 || recordLength > mostRecord) throw new Malformed('a record of it has an impossible length')
    parts.push(bytes.subarray(at + 5, at + 5 + recordLength))
    if (bytes.length < at + 5 + recordLength) return 'more'
    at += 5 + recordLength
  }
}

function wholeMessage(whole: Buffer, length: number): Buffer {
  if (whole.length > 4 + length) throw new Malformed('something follows its first message in the same record')
  return whole.subarray(4)
}

function readHello(cursor: Cursor): Hello {
  cursor.take(2 + 32)
  cursor.vector(1)
  cursor.vector(2)
  cursor.vector(1)
  const found = cursor.isOver ? new Map<number, Cursor>() : readExtensions(cursor.vector(2))
  if (!cursor.isOver) throw new Malformed('something follows its extensions')
  if (found.has(extensions.hiddenName)) return { kind: 'hidden' }
  const names = found.get(extensions.serverName)
  const protocols = found.get(extensions.protocols)
  return { kind: 'hello', serverName: names && readServerName(names), protocols: protocols ? readProtocols(protocols) : [] }
}

function readExtensions(list: Cursor): Map<number, Cursor> {
  const found = new Map<number, Cursor>()
  while (!list.isOver) {
    const type = list.number(2)
    if (found.has(type)) throw new Malformed('an extension of it is there twice')
    found.set(type, list.vector(2))
  }
  return found
}

function readServerName(extension: Cursor): string {
  const list = extension.vector(2)
  if (list.number(1) !== 0) throw new Malformed('its server name is of an unknown type')
  const name = list.vector(2).rest().toString('latin1')
  if (!list.isOver || !extension.isOver) throw new Malformed('it has more than one server name')
  return name
}

function readProtocols(extension: Cursor): string[] {
  const list = extension.vector(2)
  const protocols: string[] = []
  while (!list.isOver) protocols.push(list.vector(1).rest().toString('latin1'))
  return protocols
}

class Cursor {
  #at = 0
  readonly #bytes: Buffer

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isOver(): boolean {
    return this.#at === this.#bytes.length
  }

  take(count: number): Buffer {
    const end = this.#at + count
    if (end > this.#bytes.length) throw new Malformed('a length in its first message does not add up')
    const taken = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return taken
  }

  number(width: 1 | 2): number {
    return this.take(width).readUIntBE(0, width)
  }

  /** What follows a length of that many bytes. */
  vector(width: 1 | 2): Cursor {
    return new Cursor(this.take(this.number(width)))
  }

  rest(): Buffer {
    return this.take(this.#bytes.length - this.#at)
  }
}
