import { expect, test } from 'vitest'
import { EventQueue } from '../../src/interpreter/event-queue.js'

const piece = (length: number) => ({ type: 'stdout', bytes: new Uint8Array(length) }) as const

test('whoever fills it waits until someone reads', async () => {
  const queue = new EventQueue(() => Promise.resolve())
  queue.push(piece(2 ** 20), 2 ** 20)
  expect(queue.hasRoom).toBe(false)
  let isFree = false
  const room = queue.room().then(() => (isFree = true))
  await Promise.resolve()
  expect(isFree).toBe(false)
  await queue.next()
  await room
})

test('a million tiny pieces are few events, and count as what they hold', async () => {
  const queue = new EventQueue(() => Promise.resolve())
  for (let count = 0; count < 100_000; count += 1) queue.push(piece(1), 1)
  queue.end()
  let [events, bytes] = [0, 0]
  for await (const event of queue) {
    events += 1
    if ('bytes' in event) bytes += event.bytes.length
  }
  expect(bytes).toBe(100_000)
  expect(events).toBeLessThan(100)
})

test('a consumer that leaves interrupts, once, and nobody waits for room any more', async () => {
  let left = 0
  const queue = new EventQueue(() => {
    left += 1
    return Promise.resolve()
  })
  queue.push(piece(2 ** 21), 2 ** 21)
  for await (const _ of queue) break
  await queue.return()
  await queue.room()
  expect(left).toBe(1)
})

test('it has one consumer', () => {
  const queue = new EventQueue(() => Promise.resolve())
  queue[Symbol.asyncIterator]()
  expect(() => queue[Symbol.asyncIterator]()).toThrow('one consumer')
})

test('after an overflow nobody waits, and what finds no room is dropped', async () => {
  const queue = new EventQueue(() => Promise.resolve())
  queue.push(piece(2 ** 20), 2 ** 20)
  const room = queue.room()
  queue.overflow()
  await room
  queue.push(piece(5), 5)
  queue.push({ type: 'result', result: { isMain: false, data: {}, cut: [] } }, 2)
  expect(queue.dropped).toEqual({ outputDropped: 5, resultsDropped: 1 })
  queue.end()
  let bytes = 0
  for await (const event of queue) if ('bytes' in event) bytes += event.bytes.length
  expect(bytes).toBe(2 ** 20)
})
