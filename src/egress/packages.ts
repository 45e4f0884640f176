/**
 * Packages that come by one sandbox's way out, where its TLS is terminated. What an index promises is noted as it passes, for this sandbox alone. A file that was promised
 * is held against its hash before its last bytes go on, and kept; a kept one is handed out instead of fetching it again. So nothing that another sandbox did or an
 * index told it decides what this one gets: shared are bytes, by their hash, and only of the place that they are asked of.
 */
import { createHash, type Hash } from 'node:crypto'
import { addAbortSignal, pipeline, type Readable, Transform, type TransformCallback } from 'node:stream'
import type { Answer } from './carrier.js'
import { EgressError } from './egress-error.js'
import type { GuestRequest } from './forward.js'
import type { Header } from './front-words.js'
import { type PackageHash, readIndex, urlOf } from './package-index.js'
import { mostFileBytes, type PackageDraft, type PackageShelf } from './package-shelf.js'

type Asked = Pick<GuestRequest, 'scheme' | 'method' | 'headers' | 'path'> & {
  /** Where it is sent, as URLs have it. */
  readonly authority: string
  /** Whether the host adds a credential: then what comes is for this sandbox. */
  readonly isPrivate: boolean
}

const mostIndexBytes = 8 * 2 ** 20
/** Of indexes that one sandbox is being sent: they are held until their end. */
const mostHeldBytes = 16 * 2 ** 20
/** Of one sandbox. */
const mostKeptFiles = 2000
/** Of all indexes of one sandbox: reading them takes time that is everybody's. */
const mostReadBytes = 128 * 2 ** 20
/** Characters of what is noted for one sandbox: its memory is everybody's, too. */
const mostNotedLength = 16 * 2 ** 20
/** What is asked of an index; npm of today says no more than JSON. */
const ofIndex = /vnd\.pypi\.simple|vnd\.npm\.install|^application\/json$/i
/** Who sends these wants something else than what anybody gets. */
const own = ['authorization', 'cookie', 'range', 'if-none-match', 'if-modified-since', 'if-range']

export class Packages {
  readonly #shelf: PackageShelf
  readonly #promised = new Map<string, PackageHash>()
  #notedLength = 0
  #readBytes = 0
  #heldBytes = 0
  #keptFiles = 0
  #finding: Promise<unknown> = Promise.resolve()

  constructor(shelf: PackageShelf) {
    this.#shelf = shelf
  }

  /** The answer to a request that was allowed, from what is kept; undefined when it has to be fetched. */
  async find(asked: Asked, signal: AbortSignal): Promise<Answer | undefined> {
    const promise = this.#promiseOf(asked)
    if (!promise) return undefined
    // One at a time: each is hashed, which takes time that is everybody's.
    const found = this.#finding.then(() => (signal.aborted ? undefined : this.#shelf.find(promise.origin, promise.hash, signal)))
    this.#finding = found.catch(() => undefined)
    const kept = await found.catch(() => undefined)
    if (!kept) return undefined
    const headers: Header[] = [
      ['content-type', 'application/octet-stream'],
      ['content-length', String(kept.size)],
      ['x-glovebox-kept', promise.hash.algorithm],
    ]
    const body = addAbortSignal(signal, kept.handle.createReadStream({ start: 0 }))
    return { status: 200, statusText: 'OK', headers, body, trailers: () => [] }
  }

  /** An index is to be read as it passes, so it is asked for as it is. */
  headersFor(asked: Asked): readonly Header[] {
    return this.#isOfIndex(asked) ? asked.headers.filter(([name]) => name.toLowerCase() !== 'accept-encoding') : asked.headers
  }

  /** What is handed on of an answer. */
  async watch(asked: Asked, answer: Answer): Promise<Answer> {
    const encoding = headerOf(answer.headers, 'content-encoding')
    if (answer.status !== 200 || answer.upgraded || (encoding !== '' && encoding !== 'identity')) return answer
    const promise = this.#promiseOf(asked)
    if (promise) {
      const isLarge = Number(headerOf(answer.headers, 'content-length') || 0) > mostFileBytes
      const draft = isLarge || this.#keptFiles >= mostKeptFiles ? undefined : await this.#shelf.begin(promise.origin, promise.hash)
      if (draft) this.#keptFiles += 1
      return { ...answer, body: through(answer.body, new Verifying(promise.hash, draft)) }
    }
    const isIndex = /json|html/i.test(headerOf(answer.headers, 'content-type')) && Number(headerOf(answer.headers, 'content-length') || 0) <= mostIndexBytes
    if (!isIndex || !this.#isOfIndex(asked)) return answer
    const about = { type: headerOf(answer.headers, 'content-type'), base: `https://${asked.authority}${asked.path}` }
    return {
      ...answer,
      body: through(
        answer.body,
        new Noting(
          (text) => this.#note(text, about),
          (bytes) => this.#hold(bytes),
        ),
      ),
    }
  }

  /** False when all that is held would be too much; less is held when it is below 0. */
  #hold(bytes: number): boolean {
    if (this.#heldBytes + bytes > mostHeldBytes) return false
    this.#heldBytes += bytes
    return true
  }

  #note(text: string, about: { readonly type: string; readonly base: string }): void {
    this.#readBytes += text.length
    for (const [url, hash] of readIndex(text, about)) {
      this.#notedLength += url.length + hash.hex.length
      if (this.#notedLength > mostNotedLength) return
      this.#promised.set(url, hash)
    }
  }

  #isOfIndex(asked: Asked): boolean {
    return this.#readBytes < mostReadBytes && isPlain(asked) && ofIndex.test(headerOf(asked.headers, 'accept')) && this.#promiseOf(asked) === undefined
  }

  #promiseOf(asked: Asked): { readonly hash: PackageHash; readonly origin: string } | undefined {
    if (!isPlain(asked)) return undefined
    const origin = `https://${asked.authority}`
    const url = urlOf(asked.path, origin)
    const hash = url === undefined ? undefined : this.#promised.get(url)
    return hash && { hash, origin: new URL(origin).origin }
  }
}

/** What anybody would get who asks for it. */
function isPlain({ scheme, method, headers, isPrivate }: Asked): boolean {
  return scheme === 'https' && method === 'GET' && !isPrivate && !headers.some(([name]) => own.includes(name.toLowerCase()))
}

function headerOf(headers: readonly Header[], wanted: string): string {
  return headers.find(([name]) => name.toLowerCase() === wanted)?.[1] ?? ''
}

/** Errors of either end the other, and are told to whoever reads. */
function through(body: Readable, transform: Transform): Readable {
  pipeline(body, transform, () => undefined)
  return transform
}

/** Lets everything pass and tells it once more, before its end does, when it is not too much. */
class Noting extends Transform {
  readonly #tell: (text: string) => void
  readonly #hold: (bytes: number) => boolean
  #chunks: Buffer[] | undefined = []
  #bytes = 0

  constructor(tell: (text: string) => void, hold: (bytes: number) => boolean) {
    super()
    this.#tell = tell
    this.#hold = hold
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    if (this.#chunks && this.#bytes + chunk.length <= mostIndexBytes && this.#hold(chunk.length)) {
      this.#bytes += chunk.length
      this.#chunks.push(chunk)
    } else this.#letGo()
    done(null, chunk)
  }

  override _flush(done: TransformCallback): void {
    if (this.#chunks) this.#tell(Buffer.concat(this.#chunks).toString('utf8'))
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#letGo()
    done(error)
  }

  #letGo(): void {
    this.#chunks = undefined
    this.#hold(-this.#bytes)
    this.#bytes = 0
  }
}

/** The last of it goes on once all of it is what was promised; otherwise nobody gets a whole. */
class Verifying extends Transform {
  readonly #hash: Hash
  readonly #promised: PackageHash
  #draft: PackageDraft | undefined
  #bytes = 0
  #held: Buffer | undefined

  constructor(promised: PackageHash, draft: PackageDraft | undefined) {
    super()
    this.#promised = promised
    this.#hash = createHash(promised.algorithm)
    this.#draft = draft
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    this.#hash.update(chunk)
    this.#bytes += chunk.length
    if (this.#held) this.push(this.#held)
    this.#held = chunk
    void this.#write(chunk).then(() => done())
  }

  override _flush(done: TransformCallback): void {
    if (this.#hash.digest('hex') !== this.#promised.hex) {
      done(new EgressError('protocol', `what came is not what the index promised (${this.#promised.algorithm})`))
      return
    }
    const draft = this.#draft
    this.#draft = undefined
    const finish = (): void => {
      if (this.#held) this.push(this.#held)
      done()
    }
    if (draft) void draft.keep().then(finish, finish)
    else finish()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    void this.#drop().then(() => done(error))
  }

  /** What cannot be kept is handed on all the same. */
  async #write(chunk: Buffer): Promise<void> {
    try {
      if (this.#bytes > mostFileBytes) await this.#drop()
      else await this.#draft?.write(chunk)
    } catch {
      await this.#drop()
    }
  }

  async #drop(): Promise<void> {
    const draft = this.#draft
    this.#draft = undefined
    await draft?.drop().catch(() => undefined)
  }
}
