import { SandboxError } from '../contract/errors.js'

/** So often it is looked whether keys still hold: other processes revoke them too, and time does. */
const lookEveryMs = 1000

/** What is open in the name of keys, each of which ends with its own. */
export class Standing {
  readonly #isAccepted: (key: string) => Promise<boolean>
  readonly #open = new Map<string, Set<(reason: SandboxError) => void>>()
  #timer: NodeJS.Timeout | undefined

  /** `isAccepted`: whether a key of this id would be accepted now. */
  constructor(isAccepted: (key: string) => Promise<boolean>) {
    this.#isAccepted = isAccepted
  }

  /** Until what this returns is called: `end` is called once the key is accepted no more. */
  hold(key: string, end: (reason: SandboxError) => void): () => void {
    const ends = this.#open.get(key) ?? new Set()
    ends.add(end)
    this.#open.set(key, ends)
    this.#timer ??= setInterval(() => this.#look(), lookEveryMs).unref()
    return () => {
      ends.delete(end)
      if (ends.size === 0 && this.#open.get(key) === ends) this.#open.delete(key)
    }
  }

  #look(): void {
    if (this.#open.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    for (const [key, ends] of this.#open) {
      // What cannot be asked about is not accepted.
      this.#isAccepted(key).then(
        (isAccepted) => isAccepted || endAll(ends),
        () => endAll(ends),
      )
    }
  }
}

function endAll(ends: ReadonlySet<(reason: SandboxError) => void>): void {
  const reason = new SandboxError('unauthorized', 'the key was revoked or has expired, and what it opened ends with it', { hint: 'glovebox keys create' })
  for (const end of [...ends]) end(reason)
}
