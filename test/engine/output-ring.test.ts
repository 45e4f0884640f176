import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { OutputEvent } from '../../src/contract/run.js'
import { beginning, OutputRing } from '../../src/engine/output-ring.js'
import { RingReader } from '../../src/engine/output-ring-reader.js'

const types = ['stdout', 'stderr'] as const

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

async function readAll(reader: RingReader): Promise<OutputEvent[]> {
  const events: OutputEvent[] = []
  for await (const event of reader) events.push(event)
  return events
}

/** Each stream as a reader saw it: what it missed as dots. */
function seenBy(events: readonly OutputEvent[]): Record<string, string> {
  const seen = { stdout: '', stderr: '' }
  for (const { type, bytes, dropped = 0 } of events) seen[type] += '.'.repeat(dropped) + Buffer.from(bytes).toString('latin1')
  return seen
}

describe('a ring of output', () => {
  test('gives each of several readers all of it, in the order of arrival', async () => {
    const ring = new OutputRing(100)
    const first = new RingReader(ring, { from: beginning })
    ring.push('stdout', bytesOf('a'))
    ring.push('stderr', bytesOf('b'))
    const late = new RingReader(ring, { from: ring.end })
    const replaying = new RingReader(ring, { from: beginning })
    ring.push('stdout', bytesOf('c'))
    ring.push('stdout', bytesOf('d'))
    ring.finish()
    const all = [
      { type: 'stdout', bytes: bytesOf('a') },
      { type: 'stderr', bytes: bytesOf('b') },
      { type: 'stdout', bytes: bytesOf('cd') },
    ]
    expect(await readAll(first)).toEqual(all)
    expect(await readAll(replaying)).toEqual(all)
    expect(await readAll(late)).toEqual(all.slice(2))
  })

  test('tells a reader that was too slow what it missed of each stream, also when nothing more comes', async () => {
    const ring = new OutputRing(4)
    const reader = new RingReader(ring, { from: beginning })
    ring.push('stdout', bytesOf('0123'))
    expect(await reader.next()).toEqual({ done: false, value: { type: 'stdout', bytes: bytesOf('0123') } })
    ring.push('stderr', bytesOf('lost'))
    ring.push('stdout', bytesOf('456789'))
    ring.finish()
    expect(await readAll(reader)).toEqual([
      { type: 'stderr', bytes: bytesOf(''), dropped: 4 },
      { type: 'stdout', bytes: bytesOf('67'), dropped: 2 },
      { type: 'stdout', bytes: bytesOf('89') },
    ])
    const nothing = new OutputRing(0)
    nothing.push('stdout', bytesOf('gone'))
    nothing.finish()
    expect(await readAll(new RingReader(nothing, { from: beginning }))).toEqual([{ type: 'stdout', bytes: bytesOf(''), dropped: 4 }])
  })

  test('whatever is printed and whenever it is read, what is read and what is missed add up to what was printed, and the end is always there', async () => {
    const size = fc.integer({ min: 0, max: 20_000 })
    const piece = fc.tuple(fc.constantFrom(...types), fc.integer({ min: 0, max: 9000 }), fc.integer({ min: 0, max: 3 }), fc.option(size, { freq: 3 }))
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 40 }), size, async (pushes, first) => {
        const ring = new OutputRing(first)
        let capacity = first
        const reader = new RingReader(ring, { from: beginning })
        const printed = { stdout: '', stderr: '' }
        const events: OutputEvent[] = []
        let count = 0
        let held = 0
        for (const [type, length, reads, resized] of pushes) {
          const text = Array.from({ length }, () => String.fromCharCode(97 + (count++ % 26))).join('')
          printed[type] += text
          ring.push(type, bytesOf(text))
          held = Math.min(capacity, held + length)
          expect(ring.heldBytes).toBe(held)
          if (resized !== null) {
            ring.resize(resized)
            capacity = resized
            held = Math.min(capacity, held)
            expect(ring.heldBytes).toBe(held)
          }
          for (let turn = 0; turn < reads && ring.read(ring.begin.at); turn += 1) {
            if (events.reduce((sum, { bytes, dropped = 0 }) => sum + bytes.length + dropped, 0) === printed.stdout.length + printed.stderr.length) break
            const { value } = await reader.next()
            if (value) events.push(value)
          }
        }
        ring.finish()
        events.push(...(await readAll(reader)))
        const seen = seenBy(events)
        for (const type of types) {
          const shown = seen[type] ?? ''
          expect([...printed[type]].map((character, at) => (shown[at] === '.' ? '.' : character)).join('')).toBe(shown)
        }
      }),
      { numRuns: 60 },
    )
  })

  test('of a program that changes its stream with each byte keeps the end, in bounded memory', async () => {
    const ring = new OutputRing(2 ** 20)
    for (let at = 0; at < 100_000; at += 1) ring.push(at % 2 === 0 ? 'stdout' : 'stderr', bytesOf('x'))
    ring.finish()
    expect(ring.heldBytes).toBeGreaterThan(8000)
    expect(ring.heldBytes).toBeLessThanOrEqual(16_384)
    const seen = seenBy(await readAll(new RingReader(ring, { from: beginning })))
    expect([seen['stdout']?.length, seen['stderr']?.length]).toEqual([50_000, 50_000])
  })

  test('that is made smaller lets the oldest go and counts it, and one that is made larger keeps more of what comes', async () => {
    const ring = new OutputRing(8)
    ring.push('stdout', bytesOf('abcd'))
    ring.push('stderr', bytesOf('efgh'))
    ring.resize(3)
    expect(ring.heldBytes).toBe(3)
    ring.resize(8)
    ring.push('stdout', bytesOf('ij'))
    ring.finish()
    expect(await readAll(new RingReader(ring, { from: beginning }))).toEqual([
      { type: 'stdout', bytes: bytesOf(''), dropped: 4 },
      { type: 'stderr', bytes: bytesOf('fgh'), dropped: 1 },
      { type: 'stdout', bytes: bytesOf('ij') },
    ])
  })

  test('wakes all that wait, and lets a waiting one leave', async () => {
    const ring = new OutputRing(10)
    const [stays, leaves] = [new RingReader(ring, { from: beginning }), new RingReader(ring, { from: beginning })]
    const [more, none] = [stays.next(), leaves.next()]
    await Promise.resolve()
    expect(ring.isAwaited).toBe(true)
    await leaves.return()
    expect(await none).toEqual({ done: true, value: undefined })
    ring.push('stdout', bytesOf('x'))
    expect((await more).value).toEqual({ type: 'stdout', bytes: bytesOf('x') })
    const failing = stays.next()
    ring.fail('why')
    await expect(failing).rejects.toBe('why')
    expect(ring.isAwaited).toBe(false)
  })
})
