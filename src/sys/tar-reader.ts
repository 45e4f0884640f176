/** Reads a tar archive as it comes. It may come from a guest: nothing of it is kept but one header, and what is out of order is refused. */
import { blockBytes, malformed, paddingOf, parseHeader, parsePax, type PaxFields, type TarHeader, withPax } from './tar-header.js'

export interface TarEntry extends TarHeader {
  /** Where its content begins, in bytes of the archive. */
  readonly offset: number
  /** Of a file. What is not read of it is passed over. */
  readonly content: AsyncIterable<Uint8Array>
}

/** Two paths and some numbers fit many times. */
const mostPaxBytes = 64 * 1024

const mostPaddingBytes = 1024 * 1024

export interface TarOptions {
  /** Also names as GNU's tar writes long ones; without it such an archive is refused. */
  readonly gnu?: boolean
}

export async function* readTar(archive: AsyncIterable<Uint8Array>, options: TarOptions = {}): AsyncGenerator<TarEntry, void, undefined> {
  const source = new ByteSource(archive)
  try {
    let pax: PaxFields | undefined
    let long: Partial<Record<'name' | 'target', Buffer>> = {}
    for (;;) {
      const block = await source.take(blockBytes)
      // An archive ends with zeros; the end of the bytes before that is one cut short.
      const header = parseHeader(block)
      if (!header) break
      if (header.type === 'pax' || header.type === 'pax-global') {
        if (header.size > mostPaxBytes) throw malformed(`a pax header of ${header.size} bytes`)
        const content = await source.take(header.size + paddingOf(header.size))
        if (header.type === 'pax') pax = parsePax(content.subarray(0, header.size))
        continue
      }
      if (header.type === 'gnu-name' || header.type === 'gnu-target') {
        if (options.gnu !== true) throw malformed('a name in a form of its own')
        long = { ...long, [header.type === 'gnu-name' ? 'name' : 'target']: await takeLong(header, source) }
        continue
      }
      const named = { ...header, ...long }
      const whole = pax ? withPax(named, pax) : named
      pax = undefined
      long = {}
      yield* readEntry(whole, source)
    }
    await source.drain()
  } finally {
    await source.close()
  }
}

/** A name, with a zero behind it. */
async function takeLong({ size }: TarHeader, source: ByteSource): Promise<Buffer> {
  if (size > mostPaxBytes) throw malformed(`a name of ${size} bytes`)
  const content = (await source.take(size + paddingOf(size))).subarray(0, size)
  const end = content.indexOf(0)
  return end === -1 ? content : content.subarray(0, end)
}

async function* readEntry(header: TarHeader, source: ByteSource): AsyncGenerator<TarEntry, void, undefined> {
  const rest = { bytes: header.size }
  async function* read(): AsyncGenerator<Uint8Array, void, undefined> {
    while (rest.bytes > 0) {
      const piece = await source.some(rest.bytes)
      rest.bytes -= piece.length
      yield piece
    }
  }
  yield { ...header, offset: source.taken, content: read() }
  while (rest.bytes > 0) rest.bytes -= (await source.some(rest.bytes)).length
  await source.take(paddingOf(header.size))
}

/** Bytes in the lengths that are asked for. */
class ByteSource {
  readonly #pieces: AsyncIterator<Uint8Array, undefined>
  #rest: Uint8Array = new Uint8Array(0)
  #taken = 0

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#pieces = source[Symbol.asyncIterator]() as AsyncIterator<Uint8Array, undefined>
  }

  get taken(): number {
    return this.#taken
  }

  /** Exactly so many. */
  async take(length: number): Promise<Buffer> {
    const taken = Buffer.alloc(length)
    for (let at = 0; at < length; ) {
      const piece = await this.some(length - at)
      taken.set(piece, at)
      at += piece.length
    }
    return taken
  }

  /** At least one and at most so many. */
  async some(most: number): Promise<Uint8Array> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#pieces.next()
      if (done) throw malformed('no end: it was cut short')
      this.#rest = value
    }
    const piece = this.#rest.subarray(0, most)
    this.#rest = this.#rest.subarray(piece.length)
    this.#taken += piece.length
    return piece
  }

  /** Whoever sends is told that all was taken only when it was; behind the end there is padding and nothing else. */
  async drain(): Promise<void> {
    for (let bytes = this.#rest.length; bytes <= mostPaddingBytes; ) {
      const { done, value } = await this.#pieces.next()
      if (done) return
      bytes += value.length
    }
    throw malformed('more behind its end')
  }

  async close(): Promise<void> {
    await this.#pieces.return?.()
  }
}
