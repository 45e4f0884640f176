/**
 * Large buffers that the connections of one sandbox share: what comes fast is received in large pieces, each of which costs as much as a small one, and however
 * many connections there are, they take no more room for it than this.
 */
export const largeBytes = 524_288
const mostAtOnce = 4
/** How long those that nobody uses are kept: whoever has used them once soon does again. */
const keptMs = 1000

export class Reserve {
  readonly #idle: Buffer[] = []
  #used = 0
  #timer: NodeJS.Timeout | undefined

  /** Undefined when all of them are used. */
  take(): Buffer | undefined {
    if (this.#used === mostAtOnce) return undefined
    this.#used += 1
    clearTimeout(this.#timer)
    return this.#idle.pop() ?? Buffer.allocUnsafeSlow(largeBytes)
  }

  /** It may be used again. */
  giveBack(buffer: Buffer): void {
    this.#idle.push(buffer)
    this.lose()
  }

  /** Nobody knows who still uses it: another takes its place. */
  lose(): void {
    this.#used -= 1
    if (this.#used > 0) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#idle.splice(0), keptMs).unref()
  }
}
