/** Every act that was begun, and how it ended: exactly once, and as it had to. Sandboxes are counted besides by what the platform tells of them. */

/** What an act found otherwise than it must be. */
class Unexpected extends Error {}

export function expect(isSo, what, found) {
  if (!isSo) throw new Unexpected(`${what}; found ${shown(found)}`)
}

function shown(found) {
  const text = found instanceof Error ? `${found.name} ${found.code ?? ''}: ${found.message}` : JSON.stringify(found)
  return `${text}`.slice(0, 400)
}

export class Accounts {
  begun = 0
  ended = 0
  failures = []
  /** By act: how often it ended as it had to, by the end that it found. */
  #ends = new Map()
  #open = new Map()

  /** What the act resolves to is its end. */
  async of({ name, number, lane }, act) {
    this.begun += 1
    const key = `${name} ${lane}/${number}`
    this.#open.set(key, performance.now())
    try {
      const end = await act()
      const ends = this.#ends.get(name) ?? new Map()
      this.#ends.set(name, ends.set(end, (ends.get(end) ?? 0) + 1))
    } catch (error) {
      this.failures.push(`${key}: ${error instanceof Unexpected ? error.message : `${error.stack}`.slice(0, 1500)}`)
      throw error
    } finally {
      this.#open.delete(key)
      this.ended += 1
    }
  }

  /** Those under way, with the seconds that they have taken. */
  get open() {
    return [...this.#open].map(([key, since]) => `${key} (${Math.round((performance.now() - since) / 1000)} s)`)
  }

  /** Name, end, how often; by name. */
  get rows() {
    return [...this.#ends].flatMap(([name, ends]) => [...ends].map(([end, count]) => ({ name, end, count }))).sort((one, two) => (one.name < two.name ? -1 : 1))
  }
}

/** What the platform itself tells: each sandbox that was created is closed, once. */
export class Told {
  missed = 0
  #open = new Set()
  #wrong = []
  #created = 0
  #exits = new Map()
  #listening

  constructor(platform) {
    const stop = new AbortController()
    this.#listening = { stop, done: this.#listen(platform, stop.signal) }
  }

  async #listen(platform, signal) {
    try {
      for await (const event of platform.events.listen({ signal, types: ['created', 'closed', 'exit'] })) this.#take(event)
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  #take(event) {
    if (event.type === 'missed') this.missed += event.count ?? 1
    if (event.type === 'created') {
      this.#created += 1
      if (this.#open.has(event.sandbox)) this.#wrong.push(`${event.sandbox} was created twice`)
      this.#open.add(event.sandbox)
    }
    if (event.type === 'closed' && !this.#open.delete(event.sandbox)) this.#wrong.push(`${event.sandbox} was closed and was not there`)
    if (event.type === 'exit') this.#exits.set(event.ending.outcome.kind, (this.#exits.get(event.ending.outcome.kind) ?? 0) + 1)
  }

  get created() {
    return this.#created
  }

  get exits() {
    return [...this.#exits].sort()
  }

  /** One line for each sandbox that was not created and closed exactly once. */
  get differences() {
    return [
      ...this.#wrong,
      ...[...this.#open].map((id) => `${id} was created and not closed`),
      ...(this.missed > 0 ? [`${this.missed} events were missed`] : []),
    ]
  }

  async end() {
    this.#listening.stop.abort()
    await this.#listening.done
  }
}
