/**
 * Slows those who guess. Each source may be wrong a few times; then it waits, twice as long each time it is wrong again, and whatever it gives meanwhile is refused without being looked at.
 * Keys that were right from a source stay good there, so that a neighbour behind the same address cannot lock others out, unless they are guessed at themselves.
 * They are remembered from the first time on: whoever guesses may come later, and all at once.
 * As many sources are remembered as there is room for; when all of those are waiting, those that are not known share one place.
 */

const freeTries = 10
const firstWaitMs = 1000
const longestWaitMs = 5 * 60_000
/** After so long without a wrong one a source begins anew. */
const forgottenMs = 15 * 60_000
const mostGoodKeys = 10_000
const triesOfGoodKey = 5
const shared = '(others)'

interface Source {
  wrong: number
  waitsUntil: number
  seenAt: number
}

export interface ThrottleOptions {
  readonly mostSources?: number
  /** Milliseconds that never go back. */
  readonly now?: () => number
}

export class Throttle {
  readonly #sources = new Map<string, Source>()
  /** Keys that were right, by where that was, and how often each was wrong there since. */
  readonly #good = new Map<string, number>()
  readonly #mostSources: number
  readonly #now: () => number

  constructor({ mostSources = 10_000, now = () => performance.now() }: ThrottleOptions = {}) {
    this.#mostSources = mostSources
    this.#now = now
  }

  get size(): number {
    return this.#sources.size
  }

  /** How long this source must wait with this key; 0 when it need not. */
  waitMs(address: string | undefined, keyId: string | undefined): number {
    const source = this.#sources.get(this.#placeOf(address))
    if (!source) return 0
    const left = Math.ceil(source.waitsUntil - this.#now())
    if (left <= 0) return 0
    const wrongSince = keyId === undefined ? undefined : this.#good.get(goodName(address, keyId))
    return wrongSince !== undefined && wrongSince < triesOfGoodKey ? 0 : left
  }

  wrong(address: string | undefined, keyId: string | undefined): void {
    const source = this.#remember(address)
    const now = this.#now()
    if (now - source.seenAt > forgottenMs) source.wrong = 0
    source.seenAt = now
    source.wrong += 1
    const name = goodName(address, keyId ?? '')
    const wrongSince = this.#good.get(name)
    if (wrongSince !== undefined) this.#good.set(name, wrongSince + 1)
    if (source.wrong <= freeTries) return
    source.waitsUntil = now + Math.min(longestWaitMs, firstWaitMs * 2 ** Math.min(source.wrong - freeTries - 1, 20))
  }

  right(address: string | undefined, keyId: string): void {
    const name = goodName(address, keyId)
    this.#good.delete(name)
    this.#good.set(name, 0)
    if (this.#good.size > mostGoodKeys) this.#good.delete(this.#good.keys().next().value as string)
  }

  #placeOf(address: string | undefined): string {
    const place = addressPlace(address)
    return this.#sources.has(place) || !this.#sources.has(shared) || this.#sources.size < this.#mostSources ? place : shared
  }

  #remember(address: string | undefined): Source {
    const place = addressPlace(address)
    const known = this.#sources.get(place)
    if (known) {
      this.#sources.delete(place)
      this.#sources.set(place, known)
      return known
    }
    const named = this.#hasRoom() ? place : shared
    const source = this.#sources.get(named) ?? { wrong: 0, waitsUntil: -Infinity, seenAt: this.#now() }
    this.#sources.set(named, source)
    return source
  }

  /** The one that was seen longest ago goes, unless it waits: whoever comes from many addresses must not be forgotten by that. One place is left for the shared one. */
  #hasRoom(): boolean {
    if (this.#sources.size < this.#mostSources - 1) return true
    const [place, oldest] = this.#sources.entries().next().value as [string, Source]
    if (oldest.waitsUntil > this.#now()) return false
    this.#sources.delete(place)
    return true
  }
}

function goodName(address: string | undefined, keyId: string): string {
  return `${addressPlace(address)} ${keyId}`
}

/** One network of IPv6 is one source: whoever has one has all its addresses. */
function addressPlace(address: string | undefined): string {
  if (address === undefined) return '(local)'
  const plain = address
    .toLowerCase()
    .replace(/^::ffff:(?=\d+\.)/, '')
    .replace(/%.*$/, '')
  if (!plain.includes(':')) return plain.slice(0, 64)
  const [head = '', tail] = plain.split('::')
  const groups = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array.from({ length: Math.max(0, 8 - groups.length - after.length) }, () => '0')
  return [...groups, ...zeros, ...after].slice(0, 4).join(':').slice(0, 64)
}
