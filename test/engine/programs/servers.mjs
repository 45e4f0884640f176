/** Servers for a guest to run: `node servers.mjs KIND PORT`. */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { createServer as createTcpServer } from 'node:net'

const [kind, port] = [process.argv[2], Number(process.argv[3])]

const kinds = {
  /** Says what it was asked; a body comes back as its hash; an upgrade echoes frames. */
  http() {
    const server = createServer((request, response) => {
      const hash = createHash('sha256')
      let length = 0
      request.on('data', (bytes) => {
        hash.update(bytes)
        length += bytes.length
      })
      request.on('end', () => response.end(`${request.method} ${request.url} ${length} ${hash.digest('hex')}`))
    })
    server.on('upgrade', (request, socket) => {
      const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
      const accept = createHash('sha1').update(key).digest('base64')
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`)
      socket.on('data', (frame) => {
        const length = frame[1] & 0x7f
        const mask = frame.subarray(2, 6)
        const text = Buffer.from(frame.subarray(6, 6 + length).map((byte, index) => byte ^ mask[index % 4]))
        socket.write(Buffer.concat([Buffer.from([0x81, text.length]), text]))
      })
    })
    return server
  },
  echo: () => createTcpServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket).on('error', () => undefined)),
  /** Answers only when the other side has ended. */
  afterEnd: () =>
    createTcpServer({ allowHalfOpen: true }, (socket) => {
      let length = 0
      socket.on('data', (bytes) => (length += bytes.length))
      socket.on('end', () => socket.end(`${length} bytes`))
    }),
  /** Says that the other side has ended, and nothing more. */
  half: () => createTcpServer({ allowHalfOpen: true }, (socket) => socket.resume().on('end', () => socket.write('heard'))),
  reset: () => createTcpServer((socket) => socket.once('data', () => socket.resetAndDestroy())),
  /** Takes everyone in and reads nothing. */
  deaf: () => createTcpServer((socket) => socket.pause()),
}

kinds[kind]().listen(port, process.argv[4] ?? '127.0.0.1', () => console.log('listening'))
