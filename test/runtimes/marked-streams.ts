import type { Readable } from 'node:stream'

/** stdout and stderr of a kernel, with the marks of one execution taken out and what they printed put in order by them. */
export class MarkedStreams {
  readonly #streams: readonly Stream[]
  #token = ''
  #order: string[] = []
  #printed: [string, string] = ['', '']
  #mark = 0
  #onOutput: ((printed: string) => void) | undefined

  constructor(stdout: Readable, stderr: Readable, onChange: () => void) {
    this.#streams = [stdout, stderr].map((readable, index) => {
      const stream: Stream = { name: index === 0 ? 'stdout' : 'stderr', bytes: Buffer.alloc(0) }
      readable.on('data', (chunk: Buffer) => {
        stream.bytes = Buffer.concat([stream.bytes, chunk])
        this.#tell()
        onChange()
      })
      return stream
    })
  }

  get rest(): string {
    return this.#streams.map(({ bytes }) => bytes.toString()).join('')
  }

  begin(token: string, onOutput: ((printed: string) => void) | undefined): void {
    this.#token = token
    this.#order = []
    this.#printed = ['', '']
    this.#mark = 0
    this.#onOutput = onOutput
  }

  /** Takes what stands before marks up to this one; false while it has not come on both streams. */
  reached(mark: number): boolean {
    for (; this.#mark <= mark; this.#mark++) {
      const places = this.#streams.map(({ bytes }) => this.#placeOf(bytes, this.#mark))
      if (places.some((place) => place < 0)) return false
      for (const { bytes } of this.#streams) this.#checkKind(bytes, mark)
      this.#streams.forEach((stream, index) => this.#take(stream, index, places[index] ?? 0))
    }
    return true
  }

  note(what: string): void {
    this.#order.push(what)
  }

  end(): { stdout: string; stderr: string; order: readonly string[] } {
    this.#onOutput = undefined
    return { stdout: this.#printed[0], stderr: this.#printed[1], order: this.#order }
  }

  /** The engine waits for a frame behind every mark but those with `;`. */
  #checkKind(bytes: Buffer, framed: number): void {
    const isFramed = bytes.includes(`\x1e${this.#token}:${this.#mark}\x1e`)
    if (isFramed !== (this.#mark === 0 || this.#mark === framed))
      throw new Error(isFramed ? `mark ${this.#mark} promises a frame, and none follows` : `mark ${this.#mark} does not tell of its frame`)
  }

  #placeOf(bytes: Buffer, mark: number): number {
    return Math.max(...[':', ';'].map((kind) => bytes.indexOf(`\x1e${this.#token}${kind}${mark}\x1e`)))
  }

  #take(stream: Stream, index: number, place: number): void {
    const text = stream.bytes.subarray(0, place).toString()
    stream.bytes = stream.bytes.subarray(place + `\x1e${this.#token}:${this.#mark}\x1e`.length)
    // What stands before the first mark belongs to no execution.
    if (this.#mark === 0 || text === '') return
    this.#printed[index as 0 | 1] += text
    this.#order.push(`${stream.name} ${text}`)
  }

  #tell(): void {
    if (this.#onOutput && this.#streams.some(({ bytes }) => bytes.includes(this.#token))) this.#onOutput(this.rest)
  }
}

interface Stream {
  readonly name: string
  bytes: Buffer
}
