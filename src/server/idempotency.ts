import { createHash } from 'node:crypto'
import type { Answer } from './answers.js'
import { SandboxError } from '../contract/errors.js'
import { HttpError } from './http-error.js'

const lifeMs = 3_600_000
/** Of each tenant: nobody's make those of another forgotten. */
const most = 1000

interface Done {
  readonly fingerprint: string
  readonly answer: Promise<Answer>
  readonly expiresMs: number
}

export interface Creation {
  readonly tenant: string
  readonly key: string
  /** What was asked for: the route, where, and with what. */
  readonly asked: unknown
  /** It is shown once: what was made is not told again. */
  readonly isSecret: boolean
}

/** The same key asks for the same thing: it is made once, and told again to whoever asks again within the hour. What failed may be tried again. */
export class Idempotency {
  readonly #tenants = new Map<string, Map<string, Done>>()

  run({ tenant, key, asked, isSecret }: Creation, make: () => Promise<Answer>): Promise<Answer> {
    if (!/^[\x21-\x7e]{1,200}$/.test(key)) throw new HttpError(400, 'idempotency-key: must have 1 to 200 printable characters')
    const done = this.#doneOf(tenant)
    const now = Date.now()
    const fingerprint = createHash('sha256').update(JSON.stringify(asked)).digest('hex')
    const known = done.get(key)
    if (known && known.expiresMs > now) {
      if (known.fingerprint !== fingerprint) throw new SandboxError('conflict', 'idempotency-key: was used for something else')
      if (isSecret) throw new SandboxError('conflict', 'idempotency-key: it was made already, and is shown once')
      return known.answer
    }
    const answer = make()
    const entry = { fingerprint, answer, expiresMs: now + lifeMs }
    done.set(key, entry)
    answer.then(
      // Whoever waits for it meanwhile has it; it is not kept beyond that.
      (made) => done.get(key) === entry && isLong(made) && done.set(key, { ...entry, answer: tooLong() }),
      () => done.delete(key),
    )
    forget(done, now)
    return answer
  }

  #doneOf(tenant: string): Map<string, Done> {
    const done = this.#tenants.get(tenant) ?? new Map<string, Done>()
    this.#tenants.set(tenant, done)
    return done
  }
}

/** Of what is kept of an answer. */
const mostKeptCharacters = 65_536

function isLong(answer: Answer): boolean {
  return answer.kind === 'json' && JSON.stringify(answer.value).length > mostKeptCharacters
}

function tooLong(): Promise<Answer> {
  const answer = Promise.reject(
    new SandboxError('conflict', `idempotency-key: it was done already, and what came of it has more than ${mostKeptCharacters} characters`),
  )
  answer.catch(() => undefined)
  return answer
}

function forget(done: Map<string, Done>, now: number): void {
  for (const [key, { expiresMs }] of done) {
    if (expiresMs > now && done.size <= most) break
    done.delete(key)
  }
}
