import { parseHello } from '../../../src/egress/hello.js'
import { type FuzzTarget, holds, isSame } from '../target.js'

const vector = (width: 1 | 2 | 3, ...parts: readonly Buffer[]): Buffer => {
  const content = Buffer.concat(parts)
  const length = Buffer.alloc(width)
  length.writeUIntBE(content.length, 0, width)
  return Buffer.concat([length, content])
}
const name = (host: string): Buffer => Buffer.concat([Buffer.of(0, 0), vector(2, vector(2, Buffer.of(0), vector(2, Buffer.from(host))))])
const protocols = Buffer.concat([Buffer.of(0, 16), vector(2, vector(2, vector(1, Buffer.from('h2')), vector(1, Buffer.from('http/1.1'))))])
const hello = (...extensions: readonly Buffer[]): Buffer => {
  const body = Buffer.concat([Buffer.of(3, 3), Buffer.alloc(32), vector(1), vector(2, Buffer.of(0x13, 1)), vector(1, Buffer.of(0)), vector(2, ...extensions)])
  return Buffer.concat([Buffer.of(0x16, 3, 1), vector(2, Buffer.of(1), vector(3, body))])
}

/** The same message in records of other lengths. */
function rerecorded(bytes: Buffer, size: number): Buffer | undefined {
  if (bytes.length < 6 || bytes.readUInt16BE(3) !== bytes.length - 5) return undefined
  const message = bytes.subarray(5)
  const parts: Buffer[] = []
  for (let at = 0; at < message.length; at += size) parts.push(Buffer.of(0x16, 3, 1), vector(2, message.subarray(at, at + size)))
  return parts.length > 60 ? undefined : Buffer.concat(parts)
}

/** The first message of TLS: no part of one is another, and how it is cut into records changes nothing. */
export const target: FuzzTarget = {
  name: 'egress-hello',
  most: 1200,
  seeds: [hello(name('api.example.com'), protocols), hello(), hello(name('a')), hello(Buffer.concat([Buffer.of(0xff, 0xce), vector(2)])), hello(protocols)],
  run(bytes) {
    const whole = Buffer.from(bytes)
    const read = parseHello(whole)
    if (read === 'more') return
    if (read.kind !== 'hello') return
    for (const length of [0, 5, whole.length >> 1, whole.length - 1]) {
      const part = parseHello(whole.subarray(0, length))
      holds(part === 'more' || part.kind === 'hello', 'a part of a message is too little, or all that counts')
    }
    const other = rerecorded(whole, Math.max(40, whole.length >> 2))
    if (other) isSame(parseHello(other), read, 'records change nothing')
  },
}
