import { Duplex } from 'node:stream'
import type { PortConnection } from '../contract/ports.js'

/** A connection to a port as a stream of Node's. */
export function streamOf(connection: PortConnection): Duplex {
  const output = connection.output[Symbol.asyncIterator]()
  const stream = new Duplex({
    allowHalfOpen: true,
    read: () => {
      output.next().then(
        (result) => stream.push(result.done ? null : result.value),
        (error: unknown) => stream.destroy(error as Error),
      )
    },
    write: (bytes: Uint8Array, _encoding, done) => {
      connection.write(bytes).then(() => done(), done)
    },
    final: (done) => {
      connection.end().then(() => done(), done)
    },
    destroy: (error, done) => {
      connection.destroy().then(
        () => done(error),
        () => done(error),
      )
    },
  })
  connection.closed.catch((error: unknown) => stream.destroy(error as Error))
  return stream
}
