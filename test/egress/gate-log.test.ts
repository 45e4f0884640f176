import { describe, expect, test } from 'vitest'
import type { NetworkRecord } from '../../src/contract/network.js'
import { NetworkLog } from '../../src/egress/log.js'
import { NetworkTally } from '../../src/egress/summary.js'
import { allOf, denied, openGate, rulesOf } from './gate-harness.js'

function record(number: number, more: Partial<NetworkRecord> = {}): NetworkRecord {
  return {
    time: '2026-01-01T00:00:00.000Z',
    sandbox: 'abc',
    host: `h${number}.example`,
    port: 443,
    door: 'proxy',
    scheme: 'tls',
    bytesUp: 1,
    bytesDown: 2,
    durationMs: 1,
    verdict: 'allowed',
    rule: 'allow *',
    reason: '',
    ...more,
  }
}

describe('the log', () => {
  test('begins for each reader with its call, and ends with the sandbox', async () => {
    const log = new NetworkLog()
    log.append(record(0))
    const early = log.read()
    log.append(record(1))
    const late = log.read()
    log.append(record(2))
    log.close()
    const hosts = async (records: AsyncIterable<NetworkRecord>) => (await allOf(records)).map(({ host }) => host)
    expect([await hosts(early), await hosts(late), await hosts(log.read())]).toEqual([['h1.example', 'h2.example'], ['h2.example'], []])
  })

  test('keeps so much for a reader that is slow, and tells it what it lost', async () => {
    const log = new NetworkLog(3)
    const slow = log.read()
    for (let number = 0; number < 10; number++) log.append(record(number))
    log.close()
    expect((await allOf(slow)).map(({ host, missed }) => [host, missed])).toEqual([
      ['h7.example', 7],
      ['h8.example', undefined],
      ['h9.example', undefined],
    ])
  })

  test('wakes a reader that waits, and lets one go whose signal aborts or who stops', async () => {
    const log = new NetworkLog()
    const over = new AbortController()
    const first = allOf(log.read(over.signal))
    await new Promise((resolve) => setImmediate(resolve))
    log.append(record(1))
    over.abort()
    expect((await first).map(({ host }) => host)).toEqual(['h1.example'])
    expect(await allOf(log.read(AbortSignal.abort()))).toEqual([])
    for await (const { host } of stopping(log)) expect(host).toBe('h2.example')
  })
})

async function* stopping(log: NetworkLog): AsyncGenerator<NetworkRecord> {
  const reading = log.read()
  log.append(record(2))
  for await (const found of reading) {
    yield found
    return
  }
}

test('nothing in a record breaks a line or drives a terminal, and queries are cut', async () => {
  await using opened = openGate({ rules: rulesOf({ allow: ['a.example'] }) })
  const host = 'evil\r\n127.0.0.1 allowed\u001b[2J\u202e.example'
  const denial = denied(await opened.gate.ask({ door: 'proxy', host, port: 80, scheme: 'http', method: 'GET\nX', path: '/p\u0007ath?token=sesame#x' }))
  const [written] = opened.gate.summary().latest
  expect(written).toMatchObject({ host: 'evil\\u{d}\\u{a}127.0.0.1 allowed\\u{1b}[2J\\u{202e}.example', method: 'GET\\u{a}X', path: '/p\\u{7}ath' })
  expect(JSON.stringify([written, denial])).not.toMatch(/sesame|\\r|\\n|\\u001b/)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: their absence is what is tested
  expect(denial.message).not.toMatch(/[\u0000-\u001f\u007f]/)
  denied(await opened.gate.ask({ door: 'proxy', host: 'x'.repeat(100_000), port: 80, scheme: 'http', method: 'GET', path: `/${'y'.repeat(100_000)}` }))
  expect(JSON.stringify(opened.gate.summary()).length).toBeLessThan(10_000)
})

test('what a door refuses by itself is written down too', async () => {
  await using opened = openGate({ rules: rulesOf({}) })
  expect(opened.gate.refuse({ door: 'proxy' }, 'this is no request')).toMatchObject({
    code: 'protocol',
    status: 400,
    message: 'this is denied: this is no request',
  })
  expect(opened.gate.summary().latest).toMatchObject([{ verdict: 'denied', reason: 'this is no request', status: 400 }])
})

test('a summary stays small, whatever is asked for', () => {
  const tally = new NetworkTally()
  for (let number = 0; number < 1000; number++) tally.add(record(number, { method: `M${number}`, status: number, verdict: number % 2 ? 'denied' : 'allowed' }))
  const { byHost, byMethod, byStatus, latest, byVerdict, connections, bytesUp, bytesDown } = tally.summary
  expect([byHost, byMethod, byStatus].map((names) => Object.keys(names).length)).toEqual([257, 257, 257])
  expect(byHost['other']).toEqual({ connections: 744, bytesUp: 744, bytesDown: 1488, allowed: 372, denied: 372, failed: 0 })
  expect(latest.map(({ host }) => host)).toEqual(Array.from({ length: 10 }, (_, index) => `h${990 + index}.example`))
  expect({ byVerdict, connections, bytesUp, bytesDown }).toEqual({
    byVerdict: { allowed: 500, denied: 500, failed: 0 },
    connections: 1000,
    bytesUp: 1000,
    bytesDown: 2000,
  })
})
