import { describe, expect, test } from 'vitest'
import { AnomalyDetector, anomalyBounds } from '../../src/audit/anomalies.js'
import type { SandboxEvent } from '../../src/contract/lifetimes.js'
import type { Usage } from '../../src/contract/run.js'

const none: Usage = {
  wallMs: 1000,
  cpuUserMs: 10,
  cpuSystemMs: 10,
  memoryPeakBytes: 10 * 2 ** 20,
  processesPeak: 1,
  readBytes: 0,
  writtenBytes: 0,
  outputBytes: 100,
  hits: { memory: 0, processes: 0 },
}
const exit = (usage: Partial<Usage>): SandboxEvent => ({
  type: 'exit',
  at: '',
  pid: 1,
  ending: { outcome: { kind: 'exited', code: 0 }, usage: { ...none, ...usage }, truncated: false },
})
const limited: SandboxEvent = { type: 'limited', at: '', limit: 'memory', reason: 'process 7 met its limit of memory' }
const kinds = (found: readonly { readonly kind: string }[]): string[] => found.map(({ kind }) => kind)

describe('what looks wrong', () => {
  test('is a burst of denied connections, and not the same number over a long time', () => {
    const { count, withinMs } = anomalyBounds.deniedBurst
    const [burst, slow] = [new AnomalyDetector(), new AnomalyDetector()]
    const attempt = { verdict: 'denied', host: 'a.example', port: 443 } as const
    const found = Array.from({ length: count }, (_, index) => kinds(burst.attempt(attempt, index)))
    expect(found.slice(0, -1).flat()).toEqual([])
    expect(found.at(-1)).toEqual(['denied-burst'])
    expect(Array.from({ length: count * 3 }, (_, index) => kinds(slow.attempt(attempt, index * withinMs))).flat()).toEqual([])
  })

  test('is many ports of one host, or many hosts, tried in vain; and not what is allowed', () => {
    const [ports, hosts, allowed] = [new AnomalyDetector(), new AnomalyDetector(), new AnomalyDetector()]
    const found = Array.from({ length: 40 }, (_, index) => [
      ...ports.attempt({ verdict: 'failed', host: 'a.example', port: index + 1 }, index * 100),
      ...hosts.attempt({ verdict: 'failed', host: `h${index}.example`, port: 443 }, index * 100),
      ...allowed.attempt({ verdict: 'allowed', host: `h${index}.example`, port: index + 1 }, index * 100),
    ])
    expect(found.flat()).toEqual([
      { kind: 'port-scan', reason: '15 ports of a.example were tried in vain within 60 s' },
      { kind: 'host-scan', reason: '30 hosts were tried in vain within 60 s' },
    ])
  })

  test('is a limit that is met again and again', () => {
    const detector = new AnomalyDetector()
    const found = Array.from({ length: 8 }, (_, index) => detector.event(limited, index * 1000))
    expect(found.flat()).toEqual([{ kind: 'limit-hits', reason: 'limits were met 5 times within 60 s, last: process 7 met its limit of memory' }])
  })

  test('is a flood of output, by its amount or by its rate', () => {
    expect(kinds(new AnomalyDetector().event(exit({ outputBytes: 80 * 2 ** 20, wallMs: 100_000 }), 0))).toEqual(['output-flood'])
    expect(kinds(new AnomalyDetector().event(exit({ outputBytes: 16 * 2 ** 20, wallMs: 1000 }), 0))).toEqual(['output-flood'])
    expect(kinds(new AnomalyDetector().event(exit({ outputBytes: 16 * 2 ** 20, wallMs: 60_000 }), 0))).toEqual([])
  })

  test('is a run far above those before it in the same sandbox, and not the first few, nor a little more', () => {
    const detector = new AnomalyDetector()
    expect(kinds(detector.event(exit({ cpuUserMs: 50_000 }), 0))).toEqual([])
    const steady = new AnomalyDetector()
    for (let index = 0; index < 10; index++) expect(steady.event(exit({ cpuUserMs: 300 }), index)).toEqual([])
    expect(steady.event(exit({ cpuUserMs: 1900 }), 11)).toEqual([])
    expect(steady.event(exit({ cpuUserMs: 30_000 }), 12)).toEqual([
      { kind: 'unusual-usage', reason: 'cpuMs of a run was 30010, where its 11 runs before had 455 on average' },
    ])
  })

  test('is told once a minute of each kind, and goes on being told', () => {
    const detector = new AnomalyDetector()
    const found = Array.from({ length: 1300 }, (_, index) => detector.attempt({ verdict: 'denied', host: 'a.example', port: 443 }, index * 100))
    expect(kinds(found.flat())).toEqual(['denied-burst', 'denied-burst', 'denied-burst'])
  })

  test('is found in bounded memory', () => {
    const detector = new AnomalyDetector()
    const before = process.memoryUsage().heapUsed
    for (let index = 0; index < 50_000; index++) detector.attempt({ verdict: 'denied', host: `${index}.${'x'.repeat(200)}`, port: index % 65_535 }, 0)
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * 2 ** 20)
    expect(JSON.stringify(Object.keys(detector)).length).toBeLessThan(1000)
  })
})
