import { createServer, type IncomingMessage } from 'node:http'
import { Duplex } from 'node:stream'
import { readAbsolute, readHead } from '../../../src/egress/http-head.js'
import { readUpgrade } from '../../../src/egress/websocket.js'
import { parseHost } from '../../../src/policy/network-host.js'
import { type FuzzTarget, holds } from '../target.js'

const request = (...lines: readonly string[]): string => [...lines, '', ''].join('\r\n')

/** Of one request: what goes on is said once, and in one way. */
function judge(incoming: IncomingMessage): void {
  const head = readHead(incoming)
  readUpgrade(incoming)
  const place = readAbsolute(incoming.url ?? '', incoming.headers.host)
  if (typeof place !== 'string')
    holds(
      place.port > 0 && place.port < 65_536 && place.path.startsWith('/') && (parseHost(place.host) === undefined || !/[@/\\\s]/.test(place.host)),
      'where it goes is a host, a port and a path',
    )
  if (typeof head === 'string') return
  const { headers, framing } = head
  holds(framing === 'none' || framing === 'chunked' || (Number.isSafeInteger(framing) && framing >= 0), 'the length of a body is known')
  for (const [name, value] of headers) {
    holds(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name), 'a header has a name')
    holds(!/[\x00\r\n]/.test(value), 'a header is one line')
    holds(!['host', 'content-length', 'transfer-encoding', 'connection'].includes(name.toLowerCase()), 'how it is carried is ours to say')
  }
}

/** Heads of requests as Node's parser of HTTP hands them over. */
export const target: FuzzTarget = {
  name: 'egress-http-head',
  most: 1500,
  seeds: [
    request('GET http://example.org/a?b HTTP/1.1', 'Host: example.org', 'Accept: */*'),
    request('POST http://example.org:8080/ HTTP/1.1', 'Host: example.org:8080', 'Content-Length: 3') + 'abc',
    request('CONNECT example.org:443 HTTP/1.1', 'Host: example.org:443'),
    request('POST /x HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked') + '3\r\nabc\r\n0\r\n\r\n',
    request('GET http://[2001:db8::1]/ HTTP/1.0', 'Connection: keep-alive'),
    request(
      'GET ws://example.org/ HTTP/1.1',
      'Host: example.org',
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
      'Sec-WebSocket-Version: 13',
    ),
    request('GET http://a/ HTTP/1.1', 'Host: b', 'Host: a', 'Content-Length: 1', 'Content-Length: 1', 'Expect: 100-continue'),
  ],
  run(bytes) {
    return new Promise((resolve, reject) => {
      const server = createServer({ maxHeaderSize: 32_768, insecureHTTPParser: false, requireHostHeader: false })
      const stream = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
      const end = (act: () => void): void => {
        try {
          act()
        } catch (error) {
          reject(error as Error)
        }
      }
      server.on('request', (incoming, response) => {
        end(() => judge(incoming))
        incoming.resume()
        response.end()
      })
      for (const event of ['checkContinue', 'upgrade', 'connect'])
        server.on(event, (incoming: IncomingMessage) => {
          end(() => judge(incoming))
          stream.destroy()
        })
      server.on('clientError', () => stream.destroy())
      stream.on('close', () => resolve())
      stream.on('error', () => undefined)
      server.emit('connection', stream)
      stream.push(Buffer.from(bytes))
      setImmediate(() => stream.destroy())
    })
  },
}
