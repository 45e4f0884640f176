/**
 * When the other side breaks the rules of HTTP/2, Node's session says goodbye with an error code and tells nobody: it only reads no more, and what was asked
 * for over it would wait for ever. So it is its reading that is looked at. A healthy session stops too, but only while something is being written.
 */
import type { Duplex } from 'node:stream'

/** Two looks: between them the loop has gone round, so a write that was just over has been told. */
const [lookMs, enough] = [25, 2]

/** `stream` is what the session's TLS goes over. Told once, when it is read from no more although nothing is being written. */
export function onDeaf(stream: Duplex, tell: () => void): void {
  let timer: NodeJS.Timeout | undefined
  let looks = 0
  const wait = (): void => {
    timer ??= setTimeout(look, lookMs).unref()
  }
  const look = (): void => {
    timer = undefined
    if (stream.destroyed || !stream.isPaused()) return
    looks = stream.writableLength === 0 ? looks + 1 : 0
    if (looks < enough) wait()
    else tell()
  }
  stream.on('pause', () => {
    looks = 0
    wait()
  })
  stream.once('close', () => clearTimeout(timer))
}
