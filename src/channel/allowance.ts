/**
 * How much the connections of one cell may have on their way to its programs, all of them together: while a program does not read, it is the warden that holds
 * it, and has little room. Each may always have a little, so that none waits for another. Beyond that they share one pool, of which each may have a quarter of what
 * the others leave: much for a few, less and less for many, and never all of it for those that nobody reads.
 */
const leastShareBytes = 4096
const poolBytes = 2 * 2 ** 20

export class Allowance {
  #used = 0

  /** The most that one may have on its way now, of which so much is. */
  mostFor(held: number): number {
    const others = this.#used - beyondLeast(held)
    return leastShareBytes + Math.max(0, Math.floor((poolBytes - others) / 4))
  }

  /** One has so much on its way instead of so much before. */
  change(before: number, now: number): void {
    this.#used += beyondLeast(now) - beyondLeast(before)
  }
}

function beyondLeast(bytes: number): number {
  return Math.max(0, bytes - leastShareBytes)
}
