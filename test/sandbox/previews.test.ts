import { expect, test } from 'vitest'
import type { Forward, ForwardOptions } from '../../src/contract/ports.js'
import { Previews } from '../../src/sandbox/ports.js'

interface Opening {
  readonly resolve: (forward: Forward) => void
  readonly reject: (error: unknown) => void
}

/** Forwards that open when the test says so, or when they are aborted. */
function previews(): { readonly openings: Opening[]; readonly url: (options?: ForwardOptions) => Promise<string> } {
  const openings: Opening[] = []
  const open = (_port: number, { signal }: ForwardOptions): Promise<Forward> =>
    new Promise((resolve, reject) => {
      openings.push({ resolve, reject })
      signal?.addEventListener('abort', () => reject(signal.reason))
    })
  const all = new Previews(open)
  return { openings, url: (options = {}) => all.url(3000, options) }
}

const forward = { url: 'http://127.0.0.1:1' } as Forward
const reasonOf = (pending: Promise<unknown>): Promise<unknown> => pending.catch((reason: unknown) => reason)

test('a port is forwarded once for all that ask, and each may stop waiting by itself', async () => {
  const { openings, url } = previews()
  const controller = new AbortController()
  const [first, second] = [url(), reasonOf(url({ signal: controller.signal }))]
  controller.abort('enough')
  expect(await second).toBe('enough')
  openings[0]?.resolve(forward)
  expect([await first, await url(), openings.length]).toEqual([forward.url, forward.url, 1])
})

test('whoever asked first and stops waiting takes nothing away from the others', async () => {
  const { openings, url } = previews()
  const controller = new AbortController()
  const [first, second] = [reasonOf(url({ signal: controller.signal })), url()]
  controller.abort('enough')
  expect(await first).toBe('enough')
  while (openings.length < 2) await Promise.resolve()
  openings[1]?.resolve(forward)
  expect(await second).toBe(forward.url)
})

test('what fails for another reason fails for all that wait, and is begun anew by the next', async () => {
  const { openings, url } = previews()
  const both = [reasonOf(url()), reasonOf(url())]
  openings[0]?.reject('nothing listens')
  expect(await Promise.all(both)).toEqual(['nothing listens', 'nothing listens'])
  const next = url()
  openings[1]?.resolve(forward)
  expect(await next).toBe(forward.url)
})
