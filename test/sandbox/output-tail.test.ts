import fc from 'fast-check'
import { expect, test } from 'vitest'
import { OutputTail } from '../../src/sandbox/output-tail.js'

const capacity = 10_000

test('holds exactly the end of what was pushed, in order, whatever was read in between', async () => {
  const pieces = fc.array(fc.tuple(fc.integer({ min: 0, max: capacity + 5000 }), fc.boolean()), { maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(pieces, async (steps) => {
      const tail = new OutputTail(capacity)
      let pushed = 0
      let read = 0
      const take = async (): Promise<void> => {
        const bytes = (await tail.read()) ?? new Uint8Array(0)
        read += bytes.length
        // Every byte tells its place, so what was dropped is known by where reading goes on.
        const place = read + tail.droppedBytes - bytes.length
        expect(bytes.every((byte, index) => byte === (place + index) % 251)).toBe(true)
      }
      for (const [length, isRead] of steps) {
        tail.push(Uint8Array.from({ length }, (_, index) => (pushed + index) % 251))
        pushed += length
        expect(pushed - read - tail.droppedBytes).toBeLessThanOrEqual(capacity)
        if (isRead && pushed > read + tail.droppedBytes) await take()
      }
      tail.end()
      while (pushed > read + tail.droppedBytes) await take()
      expect(await tail.read()).toBeUndefined()
    }),
  )
})

test('a reader that waits is woken by bytes, by the end and by a failure', async () => {
  const fed = new OutputTail()
  const bytes = fed.read()
  fed.push(Uint8Array.of(1, 2))
  expect(await bytes).toEqual(Uint8Array.of(1, 2))
  const end = fed.read()
  fed.end()
  expect(await end).toBeUndefined()
  const failing = new OutputTail()
  const failed = failing.read()
  failing.fail('reason')
  await expect(failed).rejects.toBe('reason')
})
