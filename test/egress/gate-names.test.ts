import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseQuery, responseCodes, writeReply } from '../../src/egress/dns-message.js'
import { isSynthetic, SyntheticNames } from '../../src/egress/names.js'
import { addressFromBytes, parseAddress } from '../../src/policy/network-address.js'
import { denied, echo, openGate, permitted, rulesOf, serve, serveNames } from './gate-harness.js'

interface Question {
  readonly name: string
  readonly type?: number
  readonly flags?: number
  readonly counts?: readonly [number, number, number, number]
  readonly kind?: number
  readonly rest?: readonly number[]
}

function query({ name, type = 1, flags = 0x0100, counts = [1, 0, 0, 0], kind = 1, rest = [] }: Question): Uint8Array {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label, 'latin1')])
  const words = [0x1234, flags, ...counts].flatMap((word) => [word >> 8, word & 255])
  return Uint8Array.from([...words, ...labels, 0, type >> 8, type & 255, kind >> 8, kind & 255, ...rest])
}

interface Reply {
  readonly id: number
  readonly code: number
  readonly answers: readonly string[]
  readonly isReply: boolean
}

function read(bytes: Uint8Array | undefined): Reply | undefined {
  if (bytes === undefined) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const count = view.getUint16(6)
  let at = 12
  if (view.getUint16(4) === 1) {
    while (bytes[at] !== 0) at += (bytes[at] ?? 0) + 1
    at += 5
  }
  const answers: string[] = []
  for (let index = 0; index < count; index++) {
    const length = view.getUint16(at + 10)
    answers.push(addressFromBytes(bytes.subarray(at + 12, at + 12 + length))?.text ?? '')
    at += 12 + length
  }
  expect(at).toBe(bytes.length)
  return { id: view.getUint16(0), code: view.getUint16(2) & 15, answers, isReply: (view.getUint16(2) & 0x8000) !== 0 }
}

describe('a question about names', () => {
  const rules = rulesOf({ allow: ['a.example', '*.b.example:8443'], block: ['no.b.example'] })

  test.each<readonly [string, Question, Pick<Reply, 'code' | 'answers'>]>([
    ['of an allowed one has an address that stands for it', { name: 'a.example' }, { code: 0, answers: ['198.18.0.1'] }],
    ['of IPv6 too', { name: 'a.example', type: 28 }, { code: 0, answers: ['fd67:6c6f:7665::1'] }],
    ['at any port that is allowed', { name: 'x.b.example' }, { code: 0, answers: ['198.18.0.1'] }],
    ['in capitals', { name: 'A.eXample' }, { code: 0, answers: ['198.18.0.1'] }],
    ['of a blocked one', { name: 'no.b.example' }, { code: 3, answers: [] }],
    ['of another one', { name: 'secret.attacker.example' }, { code: 3, answers: [] }],
    ['of the host', { name: 'localhost' }, { code: 3, answers: [] }],
    ['of what would be an address', { name: '8.8.8.8' }, { code: 3, answers: [] }],
    ['for text', { name: 'a.example', type: 16 }, { code: 0, answers: [] }],
    ['for HTTPS', { name: 'a.example', type: 65 }, { code: 0, answers: [] }],
    ['for anything', { name: 'a.example', type: 255 }, { code: 0, answers: [] }],
    ['for text of another one', { name: 'data.attacker.example', type: 16 }, { code: 3, answers: [] }],
    ['of another class', { name: 'a.example', kind: 3 }, { code: 5, answers: [] }],
    ['that is an update', { name: 'a.example', flags: 0x2800 }, { code: 4, answers: [] }],
    ['beside another', { name: 'a.example', counts: [2, 0, 0, 0] }, { code: 1, answers: [] }],
    ['with answers in it', { name: 'a.example', counts: [1, 1, 0, 0] }, { code: 1, answers: [] }],
    ['with EDNS', { name: 'a.example', counts: [1, 0, 0, 1], rest: [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0] }, { code: 0, answers: ['198.18.0.1'] }],
    ['with a pointer', { name: `${'a'.repeat(63)}.\u00c0`, rest: [] }, { code: 1, answers: [] }],
    ['with a control character', { name: 'a\u0000.example' }, { code: 1, answers: [] }],
    ['that is too long', { name: Array.from({ length: 5 }, () => 'a'.repeat(60)).join('.') }, { code: 1, answers: [] }],
  ])('%s', async (_name, question, expected) => {
    await using opened = openGate({ rules })
    expect(read(opened.gate.answer(query(question)))).toEqual({ id: 0x1234, isReply: true, ...expected })
  })

  test('that is none gets no answer', async () => {
    await using opened = openGate({ rules })
    expect(opened.gate.answer(query({ name: 'a.example', flags: 0x8180 }))).toBeUndefined()
    expect(opened.gate.answer(new Uint8Array(11))).toBeUndefined()
    expect(opened.gate.answer(new Uint8Array(5000))).toBeUndefined()
  })

  test('that is denied is written down, and nothing leaves for it', async () => {
    await using names = await serveNames({})
    await using opened = openGate({ rules, resolver: names.resolver })
    opened.gate.answer(query({ name: 'stolen.attacker.example' }))
    expect(opened.gate.summary().latest).toMatchObject([{ host: 'stolen.attacker.example', port: 53, scheme: 'dns', verdict: 'denied' }])
    opened.gate.answer(query({ name: 'a.example' }))
    expect(names.asked).toEqual([])
    expect(opened.gate.summary().connections).toBe(1)
  })

  test('whatever its bytes, gets an answer to itself or none', async () => {
    await using opened = openGate({ rules: rulesOf({ allow: ['*'] }) })
    const near = fc.array(fc.tuple(fc.nat(60), fc.nat(255)), { maxLength: 6 }).map((changes) => {
      const bytes = query({ name: 'some.name.example' })
      for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value
      return bytes
    })
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 80 }), near), (bytes) => {
        const reply = read(opened.gate.answer(bytes))
        if (reply !== undefined) expect([reply.id, reply.isReply]).toEqual([((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0), true])
      }),
      { numRuns: 3000 },
    )
  })

  test('is handed back as it was, so that who mixed capitals into it finds them', () => {
    const bytes = query({ name: 'A.eXaMple' })
    const parsed = parseQuery(bytes)
    if (parsed === 'silence' || 'code' in parsed) throw new Error('was not read')
    expect(parsed.name).toBe('a.example')
    expect(Buffer.from(writeReply(parsed, responseCodes.ok)).includes(Buffer.from('eXaMple'))).toBe(true)
  })
})

describe('an address that stands for a name', () => {
  test('is the same each time, another for each name, and known to be one', () => {
    const names = new SyntheticNames()
    const [a, b] = [names.addressesOf('a.example'), names.addressesOf('b.example')]
    expect(names.addressesOf('a.example')).toEqual(a)
    expect([a.v4, a.v6, b.v4, b.v6].map((address) => names.nameAt(address))).toEqual(['a.example', 'a.example', 'b.example', 'b.example'])
    expect([a.v4, b.v6].every(isSynthetic)).toBe(true)
    const other = parseAddress('198.18.0.99')
    expect(other && names.nameAt(other)).toBeUndefined()
  })

  test('is forgotten with the oldest of many names, and goes to nobody else for long', () => {
    const names = new SyntheticNames(3)
    const first = names.addressesOf('n0.example')
    const kept = names.addressesOf('n1.example')
    for (let index = 2; index < 50; index++) {
      names.addressesOf(`n${index}.example`)
      names.nameAt(kept.v4)
    }
    expect([names.nameAt(first.v4), names.nameAt(kept.v6)]).toEqual([undefined, 'n1.example'])
    expect(names.addressesOf('n0.example').v4.text).not.toBe(first.v4.text)
  })

  test('leads to where its name does, at either door, under the rules for the name', async () => {
    await using server = await serve(echo)
    await using world = await serveNames({ 'a.example': ['127.0.0.1'] })
    await using opened = openGate({ rules: rulesOf({ allow: [`a.example:${server.port}`] }), resolver: world.resolver })
    const address = read(opened.gate.answer(query({ name: 'a.example' })))?.answers[0] ?? ''
    const permit = permitted(await opened.gate.ask({ door: 'direct', host: address, port: server.port, scheme: 'tcp' }))
    expect([permit.hostText, permit.address]).toEqual(['a.example', '127.0.0.1'])
    await permit.dial()
    permit.finish()
    expect(opened.gate.summary().latest[0]).toMatchObject({ door: 'direct', host: 'a.example', address: '127.0.0.1' })
    expect(opened.gate.look({ door: 'proxy', host: address, port: server.port })).toMatchObject({ allowed: true, hostText: 'a.example' })
    expect(denied(await opened.ask(address, 1)).wouldAllow).toBe('a.example:1')
    expect(denied(await opened.ask('198.18.7.7', server.port)).reason).toContain('stands for no name')
  })

  test('of one sandbox means nothing in another', async () => {
    await using one = openGate({ rules: rulesOf({ allow: ['*'] }) })
    await using other = openGate({ rules: rulesOf({ allow: ['*'] }) })
    const address = read(one.gate.answer(query({ name: 'a.example' })))?.answers[0] ?? ''
    expect(denied(await other.ask(address, 443)).code).toBe('private')
  })

  test('is given to what might be approved, and nothing is asked for it', async () => {
    await using opened = openGate({ rules: rulesOf({}), onRequest: () => Promise.resolve('deny') })
    expect(read(opened.gate.answer(query({ name: 'new.example' })))?.answers).toEqual(['198.18.0.1'])
    expect(denied(await opened.ask('198.18.0.1', 443))).toMatchObject({ code: 'declined', wouldAllow: 'new.example' })
  })
})
