import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import type { NetworkApproval } from '../../src/contract/network.js'
import { readCredentials } from '../../src/egress/credentials.js'
import { parseQuery } from '../../src/egress/dns-message.js'
import { insteadOf } from '../../src/egress/http-head.js'
import { createResolver, type Resolver } from '../../src/egress/resolver.js'
import { parseAddress } from '../../src/policy/network-address.js'
import { denied, openGate, permitted, rulesOf } from './gate-harness.js'

const local = parseAddress('127.0.0.1')

/** Answers when it is told to. */
function slowNames() {
  let answer = (): void => undefined
  const resolver: Resolver = { resolve: () => new Promise((resolve) => (answer = () => resolve(local ? [local] : []))) }
  return { resolver, answer: () => answer() }
}

const moment = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20))

test.each<NetworkApproval>(['once', 'sandbox'])('what was approved as %s does not hold for rules that came before its address was known', async (approval) => {
  const names = slowNames()
  await using opened = openGate({ rules: rulesOf({ allow: [] }), resolver: names.resolver, onRequest: () => Promise.resolve(approval) })
  const asking = opened.ask('new.example', 443)
  await moment()
  opened.gate.update(rulesOf({ allow: ['other.example'] }))
  names.answer()
  expect(denied(await asking).code).toBe('not-allowed')

  const again = opened.ask('new.example', 443)
  await moment()
  names.answer()
  permitted(await again).finish()
})

test('an approval that comes after the rules were replaced is one of before', async () => {
  const names = slowNames()
  let approve: (approval: NetworkApproval) => void = () => undefined
  await using opened = openGate({ rules: rulesOf({ allow: [] }), resolver: names.resolver, onRequest: () => new Promise((resolve) => (approve = resolve)) })
  const asking = opened.ask('new.example', 443)
  await moment()
  opened.gate.update(rulesOf({ allow: [] }))
  approve('sandbox')
  await moment()
  names.answer()
  expect(denied(await asking).code).toBe('not-allowed')
})

test('hundreds that wait for an answer that never comes are so many, and the end ends them', async () => {
  let asked = 0
  const onRequest = (): Promise<NetworkApproval> => {
    asked++
    return new Promise(() => undefined)
  }
  const opened = openGate({ rules: rulesOf({ allow: [] }), onRequest })
  const all = Array.from({ length: 300 }, (_, index) => opened.ask(`n${index}.example`, 443))
  await moment()
  await opened.gate.close()
  const reasons = (await Promise.all(all)).map((answer) => denied(answer).reason)
  expect(asked).toBe(32)
  expect(reasons.filter((reason) => reason.includes('too many attempts wait'))).toHaveLength(268)
})

test("an address of the host's own is denied in IPv6 that leads to it, too", async () => {
  const isOwn = ({ text }: { text: string }): boolean => text === '8.8.8.8'
  await using opened = openGate({ rules: rulesOf({ allow: ['*'] }, []), isOwn })
  expect(denied(await opened.ask('64:ff9b::8.8.8.8', 443)).code).toBe('private')
  permitted(await opened.ask('64:ff9b::8.8.4.4', 443)).finish()
})

test.each([
  { name: 'another method', headers: [['X-HTTP-Method-Override', 'delete']] as const, code: 'method' },
  { name: 'another method with underscores', headers: [['x_http_method', 'PUT']] as const, code: 'method' },
  { name: 'another path', headers: [['X-Original-URL', '/admin']] as const, code: 'path' },
  { name: 'a URL as path', headers: [['x-rewrite-url', 'http://other.example/v1/x']] as const, code: 'path' },
  {
    name: 'the same',
    headers: [
      ['X-HTTP-Method-Override', 'GET'],
      ['X-Original-URL', '/v1/y'],
    ] as const,
    code: undefined,
  },
  { name: 'nothing', headers: [['X-Mine', 'DELETE']] as const, code: undefined },
  // Each is judged with each: of a thousand and a thousand that would hold up everybody.
  { name: 'very many methods', headers: Array.from({ length: 1000 }, () => ['x-http-method', 'GET'] as const), code: 'method' },
  { name: 'very many paths', headers: Array.from({ length: 1000 }, () => ['x-original-url', '/v1/y'] as const), code: 'path' },
])('a request of which a header asks servers to take $name', async ({ headers, code }) => {
  const resolver: Resolver = { resolve: () => Promise.resolve(local ? [local] : []) }
  await using opened = openGate({ rules: rulesOf({ allow: [{ host: 'api.example', methods: ['GET'], paths: ['/v1/*'] }, 'open.example'] }), resolver })
  const instead = insteadOf(headers)
  const ask = (host: string) => opened.gate.ask({ door: 'proxy', host, port: 443, scheme: 'https', method: 'GET', path: '/v1/x', ...(instead && { instead }) })
  const answer = await ask('api.example')
  expect(answer.allowed ? undefined : answer.code).toBe(code)
  if (answer.allowed) answer.finish()
  // Where no rule names methods or paths, nobody minds.
  if (headers.length < 10) permitted(await ask('open.example')).finish()
})

test('what a program writes under the name of a credential is replaced in every spelling', () => {
  const credentials = readCredentials(rulesOf({ allow: ['api.example'], credentials: [{ host: 'api.example', header: 'X-Api-Key', value: 'ours' }] }))
  const theirs = ['x-api-key', 'X_API_KEY', 'X-Api_Key', 'x_api-key'].map((name) => [name, 'theirs'] as const)
  const to = { host: { kind: 'name', name: 'api.example' }, port: 443 } as const
  expect(credentials.addTo([...theirs, ['x-api-keys', 'kept']], to)).toEqual([
    ['x-api-keys', 'kept'],
    ['x-api-key', 'ours'],
  ])
})

interface Record_ {
  readonly type: number
  readonly data: Buffer
  /** Of the question when not given. */
  readonly owner?: Buffer
}

const name = (text: string): Buffer =>
  Buffer.concat([...text.split('.').map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label)])), Buffer.of(0)])
const a = (address: string): Record_ => ({ type: 1, data: Buffer.from(address.split('.').map(Number)) })

function message(
  query: Buffer,
  records: readonly Record_[],
  { flags = 0x8180, id = query.readUInt16BE(0), question }: { flags?: number; id?: number; question?: Buffer } = {},
): Buffer {
  const parsed = parseQuery(query)
  const asked = question ?? (typeof parsed === 'object' && 'question' in parsed ? Buffer.from(parsed.question) : Buffer.alloc(0))
  const head = Buffer.alloc(12)
  head.writeUInt16BE(id, 0)
  head.writeUInt16BE(flags, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(records.length, 6)
  const rows = records.map(({ type, data, owner = Buffer.of(0xc0, 12) }) => {
    const rest = Buffer.alloc(10)
    rest.writeUInt16BE(type, 0)
    rest.writeUInt16BE(1, 2)
    rest.writeUInt16BE(data.length, 8)
    return Buffer.concat([owner, rest, data])
  })
  return Buffer.concat([head, asked, ...rows])
}

/** A resolver of the host's, and a server of names that answers as it likes. */
async function hostileNames(answer: (query: Buffer) => Buffer | readonly Buffer[] | undefined) {
  const socket = createSocket('udp4')
  socket.on('message', (query, peer) => {
    const given = answer(query)
    for (const each of given === undefined ? [] : Buffer.isBuffer(given) ? [given] : given) socket.send(each, peer.port, peer.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const resolver = createResolver({ servers: [`127.0.0.1:${socket.address().port}`], timeoutMs: 600 })
  return { resolver, [Symbol.dispose]: () => socket.close() }
}

const isA = (query: Buffer): boolean => query.readUInt16BE(query.length - 4) === 1
const otherQuestion = Buffer.concat([name('evil.example'), Buffer.of(0, 1, 0, 1)])

test.each<readonly [string, (query: Buffer) => Buffer | readonly Buffer[] | undefined, string]>([
  ['that is plain', (query) => message(query, isA(query) ? [a('127.0.0.1')] : []), 'allowed'],
  ['that never comes', () => undefined, 'unresolved'],
  ['to another question', (query) => message(query, [a('127.0.0.1')], { question: otherQuestion }), 'unresolved'],
  ['with another number', (query) => message(query, [a('127.0.0.1')], { id: query.readUInt16BE(0) ^ 1 }), 'unresolved'],
  ['that points to itself', (query) => message(query, [{ ...a('127.0.0.1'), owner: Buffer.of(0xc0, 12 + query.length - 12) }]), 'unresolved'],
  ['that says how long an address is, and lies', (query) => message(query, [{ type: 1, data: Buffer.of(127, 0, 0) }]), 'unresolved'],
  [
    'that leads to a private name',
    (query) =>
      message(
        query,
        isA(query)
          ? [
              { type: 5, data: name('metadata.internal') },
              { ...a('169.254.169.254'), owner: name('metadata.internal') },
            ]
          : [],
      ),
    'private',
  ],
  ['that leads in a circle', (query) => message(query, [{ type: 5, data: Buffer.of(0xc0, 12) }]), 'unresolved'],
  ['with a private and then a good address', (query) => message(query, isA(query) ? [a('10.0.0.1'), a('127.0.0.1')] : []), 'allowed'],
  [
    'of a mapped address',
    (query) => message(query, isA(query) ? [] : [{ type: 28, data: Buffer.concat([Buffer.alloc(10), Buffer.of(255, 255, 10, 0, 0, 1)]) }]),
    'private',
  ],
  [
    'with a thousand addresses',
    (query) => message(query, isA(query) ? Array.from({ length: 1000 }, (_, index) => a(`10.0.${index >> 8}.${index & 255}`)) : []),
    'private',
  ],
  ['that is a refusal', (query) => message(query, [], { flags: 0x8185 }), 'unresolved'],
  ['that is noise', () => Buffer.alloc(400, 0xc0), 'unresolved'],
])('an answer of DNS %s', async (_name, answer, code) => {
  using names = await hostileNames(answer)
  await using opened = openGate({ rules: rulesOf({ allow: ['api.example'] }), resolver: names.resolver })
  const given = await opened.ask('api.example', 443)
  expect(given.allowed ? 'allowed' : given.code).toBe(code)
  if (!given.allowed) return
  expect(given.address).toBe('127.0.0.1')
  given.finish()
})
