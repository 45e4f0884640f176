/** Files of a snapshot: written in large pieces and hashed on the way, read back and compared. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'

const pieceBytes = 262_144

/** A file that is written once, from beginning to end. */
export class HashedFile {
  readonly #handle: FileHandle
  readonly #hash = createHash('sha256')
  #waiting: Uint8Array[] = []
  #waitingBytes = 0

  private constructor(handle: FileHandle) {
    this.#handle = handle
  }

  /** Nobody may write to it but through this, not even its owner. */
  static async create(path: string): Promise<HashedFile> {
    return new HashedFile(await open(path, 'wx', 0o400))
  }

  async write(bytes: Uint8Array): Promise<void> {
    // Whoever hands in bytes may use their memory again at once.
    this.#waiting.push(Uint8Array.prototype.slice.call(bytes))
    this.#waitingBytes += bytes.length
    if (this.#waitingBytes >= pieceBytes) await this.#flush()
  }

  /** On the disk; resolves to its SHA-256. */
  async finish(): Promise<string> {
    await this.#flush()
    await this.#handle.sync()
    await this.#handle.close()
    return this.#hash.digest('hex')
  }

  /** For one that is not finished. */
  async abandon(): Promise<void> {
    await this.#handle.close()
  }

  async #flush(): Promise<void> {
    const piece = Buffer.concat(this.#waiting)
    this.#waiting = []
    this.#waitingBytes = 0
    this.#hash.update(piece)
    await this.#handle.appendFile(piece)
  }
}

/** Its bytes; at the end it throws what `damaged` makes when their hash is not this. */
export async function* readHashed(path: string, hash: string, damaged: (cause?: unknown) => Error): AsyncGenerator<Uint8Array, void, undefined> {
  const seen = createHash('sha256')
  try {
    for await (const bytes of createReadStream(path, { highWaterMark: pieceBytes })) {
      seen.update(bytes as Uint8Array)
      yield bytes as Uint8Array
    }
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === undefined ? error : damaged(error)
  }
  if (seen.digest('hex') !== hash) throw damaged()
}

/** A folder's own entries are on the disk only after this. */
export async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
