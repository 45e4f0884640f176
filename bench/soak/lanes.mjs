/** Callers side by side, each with a sandbox that lives for a while, doing one act after the other as chance has it. */
import { aloneActs } from './acts-alone.mjs'
import { lifeActs } from './acts-life.mjs'
import { programActs } from './acts-programs.mjs'
import { randomOf } from './random.mjs'

const acts = [...programActs, ...lifeActs, ...aloneActs]
const needsNone = new Set(aloneActs)

function chooseAct(random) {
  let left = random.below(acts.reduce((sum, { weight }) => sum + weight, 0))
  return acts.find(({ weight }) => (left -= weight) < 0)
}

class Lane {
  #ground
  #random
  #number
  #done = 0
  #sandbox
  #actsLeft = 0

  constructor(ground, number) {
    this.#ground = ground
    this.#number = number
    this.#random = randomOf(ground.seed + number * 7919)
  }

  /** Until it is told to stop; the sandbox is closed then. */
  async work(isOver) {
    try {
      while (!isOver()) await this.#one()
    } finally {
      await this.#leave()
    }
  }

  /** An act that ends as it must not ends its sandbox too, so that the next begins with a new one. */
  async #one() {
    const chosen = chooseAct(this.#random)
    const { accounts } = this.#ground
    const about = { name: chosen.name, number: (this.#done += 1), lane: this.#number }
    try {
      await accounts.of(about, async () =>
        chosen.act({ ...this.#ground, random: this.#random, sandbox: needsNone.has(chosen) ? undefined : await this.#home() }),
      )
    } catch {
      await this.#leave()
    }
  }

  async #home() {
    if (this.#sandbox && this.#actsLeft > 0) {
      this.#actsLeft -= 1
      return this.#sandbox
    }
    await this.#leave()
    // Most are used a few times; some for long, so that what grows with use is seen.
    this.#actsLeft = this.#random.chance(0.1) ? 1000 : this.#random.between(1, 40)
    this.#sandbox = await this.#ground.create()
    return this.#sandbox
  }

  async #leave() {
    const sandbox = this.#sandbox
    this.#sandbox = undefined
    await sandbox?.close()
  }
}

/** Resolves when every lane has ended by itself. */
export async function workInLanes(ground, { count, isOver }) {
  await Promise.all(Array.from({ length: count }, (_, index) => new Lane(ground, index).work(isOver)))
}
