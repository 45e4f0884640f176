import { expect, test } from 'vitest'
import type { CodeEvent } from '../../src/contract/code.js'
import { EventOrder, type Timers } from '../../src/interpreter/event-order.js'
import { EventQueue } from '../../src/interpreter/event-queue.js'
import { KernelFault } from '../../src/interpreter/frames.js'

const token = 'f'.repeat(32)
const other = '0'.repeat(32)
const mark = (number: number, separator = ':', of = token): string => `\x1e${of}${separator}${number}\x1e`
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Time that goes on only when it is told to. */
class Clock implements Timers {
  #now = 0
  readonly #acts = new Map<object, { readonly at: number; readonly act: () => void }>()

  now(): number {
    return this.#now
  }

  after(ms: number, act: () => void): { cancel(): void } {
    const key = {}
    this.#acts.set(key, { at: this.#now + ms, act })
    return { cancel: () => void this.#acts.delete(key) }
  }

  pass(ms: number): void {
    this.#now += ms
    for (const [key, { at, act }] of [...this.#acts]) {
      if (at > this.#now) continue
      this.#acts.delete(key)
      act()
    }
  }
}

function begin() {
  const clock = new Clock()
  const order = new EventOrder(clock)
  const queue = new EventQueue(() => Promise.resolve())
  order.begin(token, queue)
  const say = (type: 'stdout' | 'stderr', text: string): void => order.output({ type, bytes: bytes(text) })
  const both = (text: string): void => (['stdout', 'stderr'] as const).forEach((type) => say(type, text))
  const result = (number: number): Promise<void> =>
    order.frame(number, () => queue.push({ type: 'result', result: { isMain: false, data: { 'text/plain': `${number}` }, cut: [] } }, 1))
  const done = (number: number): Promise<void> => order.frame(number, () => order.finish(number))
  return { clock, order, queue, say, both, result, done }
}

/** What is in it, as text; neighbours of a stream are one. */
async function read(queue: EventQueue): Promise<string[]> {
  queue.end()
  const told: string[] = []
  const show = (event: CodeEvent): string => ('bytes' in event ? `${event.type} ${Buffer.from(event.bytes).toString()}` : event.type)
  for await (const event of queue) {
    const text = show(event)
    const last = told.at(-1)
    if ('bytes' in event && last?.startsWith(`${event.type} `)) told[told.length - 1] = last + text.slice(event.type.length + 1)
    else told.push(text)
  }
  return told
}

test('a result stands between what was printed before it and after it, whichever came first', async () => {
  const { say, both, result, done, queue } = begin()
  both(mark(0))
  say('stdout', `a${mark(1)}b${mark(2)}`)
  const first = result(1)
  say('stderr', `e${mark(1)}f`)
  await first
  say('stderr', mark(2))
  await done(2)
  expect(await read(queue)).toEqual(['stdout a', 'stderr e', 'result', 'stdout b', 'stderr f'])
})

test('what follows a mark waits for its frame', async () => {
  const { both, say, result, queue } = begin()
  both(mark(0) + mark(1))
  say('stdout', 'after')
  await result(1)
  expect(await read(queue)).toEqual(['result', 'stdout after'])
})

test('a mark without a frame keeps both streams in order, and waits for nothing else', async () => {
  const { both, say, queue } = begin()
  both(mark(0))
  say('stdout', `1${mark(1, ';')}3${mark(2, ';')}`)
  say('stderr', `${mark(1, ';')}${mark(2, ';')}4`)
  expect(await read(queue)).toEqual(['stdout 13', 'stderr 4'])
  const second = begin()
  second.both(mark(0))
  second.say('stderr', `${mark(1, ';')}late`)
  second.say('stdout', `early${mark(1, ';')}`)
  expect(await read(second.queue)).toEqual(['stdout early', 'stderr late'])
})

test('marks are taken out wherever the pieces are cut', async () => {
  const text = `${mark(0)}a${mark(1, ';')}b${mark(2, ';')}`
  for (let at = 1; at < text.length; at += 1) {
    const { say, queue } = begin()
    say('stderr', text)
    say('stdout', text.slice(0, at))
    say('stdout', text.slice(at))
    const told = await read(queue)
    expect(told.filter((each) => each.startsWith('stdout')).join('')).toBe(
      'stdout astdout b'.replace('stdout b', told.includes('stdout ab') ? 'b' : 'stdout b'),
    )
    expect(told.join('')).not.toContain('\x1e')
  }
})

test('marks that are not the next one, and those of others, are output', async () => {
  const { both, say, queue } = begin()
  both(mark(0))
  const forged = `${mark(2)}${mark(0)}${mark(1, ':', other)}\x1e${token}\x1e${mark(1, '!')}`
  say('stdout', `${forged}end`)
  expect(await read(queue)).toEqual([`stdout ${forged}end`])
})

test('what is printed before mark 0 and after the last mark is dropped and counted', async () => {
  const { both, say, done, queue, order } = begin()
  say('stdout', `old${mark(0)}mine${mark(1)}late`)
  say('stderr', `${mark(0)}${mark(1)}`)
  await done(1)
  say('stdout', 'later')
  expect(order.lateBytes).toBe(3 + 4 + 5)
  expect(await read(queue)).toEqual(['stdout mine'])
  both('x')
  expect(order.lateBytes).toBe(14)
})

test('a mark that does not come is given up after a second', async () => {
  const { say, result, clock, queue } = begin()
  say('stdout', `${mark(0)}a${mark(1)}`)
  const passed = result(1)
  clock.pass(999)
  expect(queue.hasRoom).toBe(true)
  clock.pass(1)
  await passed
  expect(await read(queue)).toEqual(['stdout a', 'result'])
})

test('a frame that does not come holds output for no more than a second', async () => {
  const { both, say, clock, queue } = begin()
  both(mark(0) + mark(1))
  say('stdout', 'held')
  clock.pass(1000)
  expect(await read(queue)).toEqual(['stdout held'])
})

test('a reader that does not read is no reason to give up a mark', async () => {
  const { say, result, clock, queue } = begin()
  say('stdout', `${mark(0)}${'a'.repeat(2 ** 21)}`)
  let isPassed = false
  const passed = result(1).then(() => (isPassed = true))
  clock.pass(5000)
  await Promise.resolve()
  expect(isPassed).toBe(false)
  await queue.next()
  clock.pass(1000)
  await passed
})

test('what is held is bounded', async () => {
  const { both, say, queue } = begin()
  both(mark(0))
  say('stdout', mark(1))
  for (let piece = 0; piece < 40; piece += 1) say('stdout', 'b'.repeat(65_536))
  expect(queue.hasRoom).toBe(false)
})

test('forged marks without end take no memory without end', () => {
  const { say, order } = begin()
  say('stdout', Array.from({ length: 30_000 }, (_, number) => mark(number)).join(''))
  expect(() => order.finish()).not.toThrow()
})

test('when the streams are over no mark is waited for', async () => {
  const { say, result, order, queue } = begin()
  say('stdout', `${mark(0)}a`)
  const first = result(1)
  order.endStreams()
  await first
  await result(2)
  expect(await read(queue)).toEqual(['stdout a', 'result', 'result'])
})

test('frames whose marks go back are faults', async () => {
  const { both, result } = begin()
  both(mark(0) + mark(1) + mark(2))
  await result(2)
  expect(() => result(2)).toThrow(KernelFault)
  expect(() => result(1)).toThrow(KernelFault)
})

test('a frame that names a mark far beyond all others costs no more than any', async () => {
  const { order, queue, both, result } = begin()
  both(mark(0))
  const passed = result(Number.MAX_SAFE_INTEGER)
  order.endStreams()
  await passed
  expect(await read(queue)).toEqual(['result'])
})

test('ten thousand gates that open at once keep their order, and nobody waiting', async () => {
  const { queue, say, both } = begin()
  const many = 10_000
  both(mark(0))
  const startedAt = performance.now()
  for (const type of ['stdout', 'stderr'] as const) say(type, Array.from({ length: many }, (_, at) => `${mark(at + 1, ';')}${type[3]}`).join(''))
  expect(performance.now() - startedAt).toBeLessThan(1000)
  queue.overflow()
  const told = await read(queue)
  expect(told.length).toBe(2 * many)
  expect(told.slice(0, 4)).toEqual(['stdout o', 'stderr e', 'stdout o', 'stderr e'])
})

test('output that is all beginnings of marks is read as fast as any', async () => {
  const { queue, say, both } = begin()
  both(mark(0))
  const startedAt = performance.now()
  say('stdout', '\x1e'.repeat(8 * 2 ** 20))
  expect(performance.now() - startedAt).toBeLessThan(500)
  say('stdout', 'x')
  expect((await read(queue))[0]?.length).toBe('stdout '.length + 8 * 2 ** 20 + 1)
})
