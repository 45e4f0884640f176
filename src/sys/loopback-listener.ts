import { createServer, type Server, type Socket } from 'node:net'
import { SandboxError } from '../contract/errors.js'
import type { LoopbackConnection, LoopbackListener, LoopbackOrder } from '../contract/ports.js'

const host = '127.0.0.1'

/**
 * Listens on the host's loopback, and on no other address. It keeps this process alive until it is closed: whoever opened it wants to be reached.
 * Throws SandboxError: 'conflict' when the port is in use, 'denied' when this user may not have it.
 */
export async function listenOnLoopback(order: LoopbackOrder): Promise<LoopbackListener> {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    order.onConnection(connectionOf(socket))
  })
  // Those beyond are closed as soon as they are there.
  server.maxConnections = order.mostConnections
  await listening(server, order.port ?? 0)
  const { port } = server.address() as { readonly port: number }
  return {
    port,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const socket of sockets) breakOff(socket)
      await closed
    },
  }
}

function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenFailure(error, port)))
    server.listen({ host, port, exclusive: true, backlog: 511 }, resolve)
  })
}

function listenFailure(error: NodeJS.ErrnoException, port: number): SandboxError {
  if (error.code === 'EADDRINUSE')
    return new SandboxError('conflict', `port: ${port} of ${host} is in use`, { cause: error, hint: `ss -ltnp 'sport = :${port}'` })
  if (error.code === 'EACCES') return new SandboxError('denied', `port: this user may not listen on ${port} of ${host}`, { cause: error })
  return new SandboxError('unavailable', `port: nothing can listen on ${port} of ${host}: ${error.message}`, { cause: error })
}

function connectionOf(socket: Socket): LoopbackConnection {
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  // A reset is told to whoever reads or writes; it is no failure of this process.
  socket.on('error', () => undefined)
  return {
    input: { [Symbol.asyncIterator]: () => socket.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array> },
    closed,
    write: (bytes) => new Promise((resolve, reject) => socket.write(bytes, (error) => (error ? reject(error) : resolve()))),
    end: () => new Promise((resolve) => (socket.destroyed ? resolve() : socket.end(() => resolve()))),
    destroy: () => breakOff(socket),
  }
}

/** A reset in the midst of an end would be refused by the system's library, and leave the socket open for as long as this process lives. */
function breakOff(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy()
  else socket.resetAndDestroy()
}
