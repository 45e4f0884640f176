export const shownSecret = '(secret)'

/** A text that must not be seen by chance: printed, inspected, serialised or hashed it says only that it is one. */
export class Secret {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  /** For the wire, and for nothing else. */
  reveal(): string {
    return this.#text
  }

  toString(): string {
    return shownSecret
  }

  toJSON(): string {
    return shownSecret
  }
}
