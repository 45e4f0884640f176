import { connect, createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { connect as connectTls } from 'node:tls'
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { type Hello, parseHello } from '../../src/egress/hello.js'
import { sniff } from '../../src/egress/sniff.js'
import { parseSocksGreeting, parseSocksRequest } from '../../src/egress/socks.js'
import { judgeHello } from '../../src/egress/tls.js'
import { parseHost } from '../../src/policy/network-host.js'

/** What a real client sends first. */
async function realHello(servername: string): Promise<Buffer> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connectTls({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', servername, ALPNProtocols: ['h2', 'http/1.1'] })
  client.on('error', () => undefined)
  const [socket] = (await once(server, 'connection')) as [ReturnType<typeof connect>]
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  client.destroy()
  socket.destroy()
  server.close()
  return bytes
}

let named: Buffer
let unnamed: Buffer

beforeAll(async () => {
  named = await realHello('api.example.com')
  unnamed = await realHello('')
})

/** The same message in records of that many bytes. */
function inRecords(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5)
  const records: Buffer[] = []
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size)
    records.push(Buffer.of(0x16, 3, 1, part.length >> 8, part.length & 0xff), part)
  }
  return Buffer.concat(records)
}

test('the name and the protocols of a real client are read', () => {
  expect(parseHello(named)).toEqual({ kind: 'hello', serverName: 'api.example.com', protocols: ['h2', 'http/1.1'] })
  expect(parseHello(unnamed)).toEqual({ kind: 'hello', serverName: undefined, protocols: ['h2', 'http/1.1'] })
})

test('a message in several records is the same message', () => {
  expect(parseHello(inRecords(named, 40))).toEqual(parseHello(named))
})

test('every part of it is too little, and never something else', () => {
  for (let length = 0; length < named.length; length += 1) expect(parseHello(named.subarray(0, length))).toBe('more')
})

test('in a hundred records it is refused', () => {
  expect(parseHello(inRecords(named, 3))).toMatchObject({ kind: 'invalid' })
})

test('what follows in the same record is refused', () => {
  const longer = Buffer.concat([named, Buffer.of(0)])
  longer.writeUInt16BE(named.length - 5 + 1, 3)

  expect(parseHello(longer)).toMatchObject({ kind: 'invalid' })
})

test('a message that never ends is refused once it is too long', () => {
  const huge = Buffer.alloc(70_000)
  huge.set([0x16, 3, 1, 0x40, 0, 1, 1, 0, 0])

  expect(parseHello(huge)).toMatchObject({ kind: 'invalid' })
})

/** The extensions are the last part; what is added to them changes three lengths. */
function withExtension(hello: Buffer, extension: Buffer): Buffer {
  const bytes = Buffer.concat([hello, extension])
  const at = 5 + 4 + 2 + 32
  let position = at + 1 + (bytes[at] ?? 0)
  position += 2 + bytes.readUInt16BE(position)
  position += 1 + (bytes[position] ?? 0)
  bytes.writeUInt16BE(bytes.readUInt16BE(position) + extension.length, position)
  bytes.writeUIntBE(bytes.readUIntBE(6, 3) + extension.length, 6, 3)
  bytes.writeUInt16BE(bytes.readUInt16BE(3) + extension.length, 3)
  return bytes
}

function serverName(...names: string[]): Buffer {
  const list = Buffer.concat(names.map((name) => Buffer.concat([Buffer.of(0, 0, name.length), Buffer.from(name, 'latin1')])))
  return Buffer.concat([Buffer.of(0, 0, 0, list.length + 2, 0, list.length), list])
}

test('a name that is added is read, a second one is refused', () => {
  expect(parseHello(withExtension(unnamed, serverName('evil.test')))).toMatchObject({ kind: 'hello', serverName: 'evil.test' })
  expect(parseHello(withExtension(named, serverName('evil.test')))).toMatchObject({ kind: 'invalid' })
  expect(parseHello(withExtension(unnamed, serverName('api.example.com', 'evil.test')))).toMatchObject({ kind: 'invalid' })
})

test('a name that is hidden in the old way is no name', () => {
  expect(parseHello(withExtension(named, Buffer.of(0xff, 0xce, 0, 0)))).toEqual({ kind: 'hidden' })
})

const host = parseHost('api.example.com') ?? expect.fail('no host')
const of = (name: string | undefined): Hello => ({ kind: 'hello', serverName: name, protocols: [] })

test.each([
  ['api.example.com', true],
  ['API.example.COM', true],
  ['api.example.com.', true],
  [undefined, false],
  ['', false],
  ['example.com', false],
  ['x.api.example.com', false],
  ['api.example.com\0.evil.test', false],
  ['evil.test', false],
  ['127.0.0.1', false],
])('%s as the name of TLS to api.example.com: %s', (name, isFine) => {
  expect(judgeHello(of(name), { host, hostText: 'api.example.com', sni: 'match' }) === undefined).toBe(isFine)
  expect(judgeHello(of(name), { host, hostText: 'api.example.com', sni: 'any' })).toBeUndefined()
})

test('a hidden name and a message that cannot be read are refused', () => {
  expect(judgeHello({ kind: 'hidden' }, { host, hostText: 'a', sni: 'match' })).toContain('hides')
  expect(judgeHello({ kind: 'invalid', reason: 'x' }, { host, hostText: 'a', sni: 'any' })).toContain('cannot be read')
})

test('whatever the bytes, parsers give an answer and throw nothing', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
      const buffer = Buffer.from(bytes)
      parseHello(buffer)
      parseSocksGreeting(buffer)
      parseSocksRequest(buffer)
      sniff(buffer)
    }),
  )
})

test('whatever byte of a hello changes, its name is the one that stands in it, or it is refused', () => {
  fc.assert(
    fc.property(fc.nat(named.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const bytes = Buffer.from(named)
      bytes[at] = (bytes[at] ?? 0) ^ change
      const read = parseHello(bytes)
      if (read !== 'more' && read.kind === 'hello' && read.serverName !== undefined) expect(bytes.includes(Buffer.from(read.serverName, 'latin1'))).toBe(true)
    }),
    { numRuns: 1000 },
  )
})

test.each([
  ['05', 'socks5'],
  ['04', 'socks4'],
  ['1603', 'tls'],
  ['474554202f', 'http'],
  ['474554', 'more'],
  ['0d0a474554202f', 'http'],
  ['505249202a', 'other'],
  ['676574202f', 'other'],
  ['00', 'other'],
  ['80', 'other'],
])('%s is %s', (hex, speech) => {
  expect(sniff(Buffer.from(hex, 'hex'))).toBe(speech)
})
