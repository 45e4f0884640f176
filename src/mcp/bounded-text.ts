import { wellFormed } from '../contract/path-text.js'

/** What a program printed, as much of it as an agent can read: the beginning and the end, and how much was between. */
const mostHead = 20_000
const mostTail = 10_000

export class BoundedText {
  readonly #decoder = new TextDecoder()
  #head = ''
  #tail = ''
  #left = 0

  add(bytes: Uint8Array): string {
    const text = this.#decoder.decode(bytes, { stream: true })
    this.#append(text)
    return text
  }

  #append(text: string): void {
    const room = mostHead - this.#head.length
    if (room > 0) this.#head += text.slice(0, room)
    const rest = text.slice(Math.max(0, room))
    if (rest === '') return
    const tail = this.#tail + rest
    this.#left += Math.max(0, tail.length - mostTail)
    this.#tail = tail.slice(-mostTail)
  }

  /** How many characters are not in `text`. */
  get cut(): number {
    return this.#left
  }

  get text(): string {
    return wellFormed(this.#left === 0 ? this.#head + this.#tail : `${this.#head}\n[… ${this.#left} characters left out …]\n${this.#tail}`)
  }
}
