// Frames as runtimes/PROTOCOL.md has them: `TYPE TOKEN LENGTH\n`, then LENGTH bytes.

const requests = 3
const replies = 4
const mostLine = 64
const mostPayload = 16_777_216
const heading = /^([a-z]+) ([0-9a-f]{32}|-) (0|[1-9][0-9]{0,7})$/

function sleep(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** Writes everything, however little the other side takes at a time. @returns {boolean} whether it could */
export function writeAll(system, descriptor, bytes) {
  for (let done = 0; done < bytes.length; ) {
    try {
      done += system.writeSync(descriptor, bytes, done, bytes.length - done)
    } catch (error) {
      if (error.code !== 'EAGAIN' && error.code !== 'EINTR') return false
      sleep(2)
    }
  }
  return true
}

/** @param {string} json */
export function writeFrame(system, { type, token, json }) {
  const payload = system.bytesOf(json)
  const head = system.bytesOf(`${type} ${token} ${payload.length}\n`)
  const frame = new Uint8Array(head.length + payload.length)
  frame.set(head)
  frame.set(payload, head.length)
  if (!writeAll(system, replies, frame)) system.end(74)
}

export class FrameReader {
  #system
  #onFrame
  #chunk = new Uint8Array(65_536)
  #head = ''
  #frame
  #got = 0

  constructor(system, onFrame) {
    this.#system = system
    this.#onFrame = onFrame
    this.#next()
  }

  /** A read that waits in a thread of its own keeps the process alive and needs nothing that code could have replaced. */
  #next() {
    this.#system.read(requests, this.#chunk, 0, this.#chunk.length, null, (error, count) => {
      if (error?.code === 'EAGAIN' || error?.code === 'EINTR') {
        this.#system.setTimeout(() => this.#next(), 5)
        return
      }
      if (error || count === 0) this.#system.end(0)
      const piece = this.#chunk.slice(0, count)
      this.#next()
      this.#take(piece)
    })
  }

  #take(piece) {
    for (let at = 0; at < piece.length; ) at = this.#frame === undefined ? this.#takeHead(piece, at) : this.#takePayload(piece, at)
  }

  #takeHead(piece, start) {
    let at = start
    for (; at < piece.length && piece[at] !== 10; at++) this.#head += String.fromCharCode(piece[at])
    if (this.#head.length > mostLine) this.#system.end(65)
    if (at === piece.length) return at
    const parts = heading.exec(this.#head)
    if (parts === null || Number(parts[3]) > mostPayload) this.#system.end(65)
    this.#frame = { type: parts[1], token: parts[2], payload: new Uint8Array(Number(parts[3])) }
    this.#head = ''
    this.#got = 0
    if (this.#frame.payload.length === 0) this.#finish()
    return at + 1
  }

  #takePayload(piece, at) {
    const { payload } = this.#frame
    const part = piece.subarray(at, at + payload.length - this.#got)
    payload.set(part, this.#got)
    this.#got += part.length
    if (this.#got === payload.length) this.#finish()
    return at + part.length
  }

  #finish() {
    const frame = this.#frame
    this.#frame = undefined
    this.#onFrame(frame)
  }
}
