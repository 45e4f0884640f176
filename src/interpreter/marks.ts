/**
 * Takes the marks of one execution out of one stream. Only the next mark is one: any other bytes, whatever they look like, are output. A mark has a `:` when a frame
 * follows it, and a `;` when none does.
 */

const nothing = new Uint8Array(0)
const separator = 0x1e
const [colon, semicolon] = [0x3a, 0x3b]

/** Output in the order of the stream; `after` is the mark that it follows, -1 before the first. */
export interface Stretch {
  readonly after: number
  readonly bytes: Uint8Array
}

export class MarkScanner {
  readonly #head: Buffer
  readonly #onFramed: (mark: number) => void
  #reached = -1
  #tailOfNext: Buffer
  /** The end of what was read, where it may be the beginning of the next mark. */
  #begun: Uint8Array = nothing

  /** `onFramed` is told of each mark that a frame follows. */
  constructor(token: string, onFramed: (mark: number) => void) {
    this.#head = Buffer.from(`\x1e${token}`, 'latin1')
    this.#onFramed = onFramed
    this.#tailOfNext = tailOf(0)
  }

  /** The latest mark that was seen, or given up. */
  get reached(): number {
    return this.#reached
  }

  push(piece: Uint8Array): Stretch[] {
    const bytes = this.#begun.length > 0 ? Buffer.concat([this.#begun, piece]) : Buffer.from(piece.buffer, piece.byteOffset, piece.length)
    this.#begun = nothing
    const stretches: Stretch[] = []
    let from = 0
    for (let at = this.#next(bytes, 0); at !== -1; at = this.#next(bytes, Math.max(from, at + 1))) {
      const found = this.#markAt(bytes, at)
      if (found === 'none') continue
      this.#add(stretches, bytes.subarray(from, at))
      if (found === 'begun') {
        // A copy: what it is a part of may be large.
        this.#begun = Uint8Array.prototype.slice.call(bytes, at)
        return stretches
      }
      this.#reach(this.#reached + 1)
      if (found === 'framed') this.#onFramed(this.#reached)
      from = at + this.#lengthOf(this.#reached)
    }
    this.#add(stretches, bytes.subarray(from))
    return stretches
  }

  /** What was held back as the beginning of a mark is none. */
  flush(): Stretch[] {
    const stretches: Stretch[] = []
    this.#add(stretches, this.#begun)
    this.#begun = nothing
    return stretches
  }

  /** No mark up to this one comes any more. */
  giveUp(mark: number): Stretch[] {
    if (mark <= this.#reached) return []
    const stretches = this.flush()
    this.#reach(mark)
    return stretches
  }

  /** Where a mark may be: at a whole head, or amid one that the bytes end with. Anything else that code prints costs no more than this search. */
  #next(bytes: Buffer, from: number): number {
    const whole = bytes.indexOf(this.#head, from)
    return whole === -1 ? bytes.indexOf(separator, Math.max(from, bytes.length - this.#head.length + 1)) : whole
  }

  /** `begun`: the bytes end amid what may become one. */
  #markAt(bytes: Buffer, at: number): 'none' | 'begun' | 'framed' | 'bare' {
    const head = bytes.subarray(at, at + this.#head.length)
    if (!head.equals(this.#head.subarray(0, head.length))) return 'none'
    const kind = bytes[at + this.#head.length]
    if (kind === undefined) return 'begun'
    const start = at + this.#head.length + 1
    const tail = bytes.subarray(start, start + this.#tailOfNext.length)
    if ((kind !== colon && kind !== semicolon) || !tail.equals(this.#tailOfNext.subarray(0, tail.length))) return 'none'
    if (tail.length < this.#tailOfNext.length) return 'begun'
    return kind === colon ? 'framed' : 'bare'
  }

  #lengthOf(mark: number): number {
    return this.#head.length + 1 + tailOf(mark).length
  }

  #add(stretches: Stretch[], bytes: Uint8Array): void {
    if (bytes.length > 0) stretches.push({ after: this.#reached, bytes })
  }

  #reach(mark: number): void {
    this.#reached = mark
    this.#tailOfNext = tailOf(mark + 1)
  }
}

function tailOf(mark: number): Buffer {
  return Buffer.from(`${mark}\x1e`, 'latin1')
}
