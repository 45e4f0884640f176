/**
 * The streams of a container that was attached to, over one connection. What we write is its stdin. What comes back is its stdout and stderr in turns, each piece after
 * eight bytes: the number of the stream, three zeros, and the length as a big-endian number.
 *
 * Nothing is read from the connection while either stream is full, so that a container which prints more than is read has to wait.
 */
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { SandboxError } from '../../contract/errors.js'
import type { Connection } from './client.js'

export interface AttachedStreams {
  readonly stdin: Socket
  readonly stdout: Readable & { ref(): void; unref(): void }
  readonly stderr: Readable & { ref(): void; unref(): void }
}

const headerBytes = 8
/** Docker's own copies are of 32 KiB; nothing sensible is beyond this. */
const mostPieceBytes = 64 * 2 ** 20
const stdoutNumber = 1
const stderrNumber = 2

export function attachedStreams({ socket, head }: Connection): AttachedStreams {
  const stdout = new AttachedStream(socket)
  const stderr = new AttachedStream(socket)
  const streams = [stdout, stderr]
  const take = pieces((stream, bytes) => {
    if (!(stream === stderrNumber ? stderr : stdout).push(bytes)) socket.pause()
  })
  const feed = (bytes: Buffer): void => {
    try {
      take(bytes)
    } catch (error) {
      socket.destroy(error as Error)
    }
  }
  socket.on('data', feed)
  socket.on('end', () => streams.forEach((stream) => void stream.push(null)))
  socket.on('error', (error) => streams.forEach((stream) => void stream.destroy(error)))
  socket.on('close', () => {
    for (const stream of streams) if (!stream.readableEnded && !stream.isOver) stream.push(null)
  })
  if (head.length > 0) feed(head)
  socket.setTimeout(0)
  socket.resume()
  return { stdin: socket, stdout, stderr }
}

class AttachedStream extends Readable {
  readonly #socket: Socket
  isOver = false

  constructor(socket: Socket) {
    super()
    this.#socket = socket
  }

  ref(): void {
    this.#socket.ref()
  }

  unref(): void {
    this.#socket.unref()
  }

  override push(bytes: Buffer | null): boolean {
    if (this.isOver || this.destroyed) return true
    this.isOver = bytes === null
    return super.push(bytes)
  }

  override _read(): void {
    this.#socket.resume()
  }
}

/** Finds the pieces in bytes that come in any portions; what is there of a piece is handed on at once. */
function pieces(onPiece: (stream: number, bytes: Buffer) => void): (bytes: Buffer) => void {
  let header = Buffer.alloc(0)
  let stream = stdoutNumber
  let left = 0
  return (bytes) => {
    let rest = bytes
    while (rest.length > 0) {
      if (left === 0) {
        const missing = headerBytes - header.length
        header = Buffer.concat([header, rest.subarray(0, missing)])
        rest = rest.subarray(missing)
        if (header.length < headerBytes) return
        stream = header[0] as number
        left = header.readUInt32BE(4)
        if ((stream !== stdoutNumber && stream !== stderrNumber) || left > mostPieceBytes) throw malformed(header)
        header = Buffer.alloc(0)
        continue
      }
      const piece = rest.subarray(0, left)
      left -= piece.length
      rest = rest.subarray(piece.length)
      onPiece(stream, piece)
    }
  }
}

function malformed(header: Buffer): SandboxError {
  return new SandboxError('broken', `the container engine sent a piece of a stream that begins with ${header.toString('hex')}`)
}
