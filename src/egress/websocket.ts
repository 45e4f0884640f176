/** The one protocol that a connection may change to. Its frames are not looked at. */
import type { IncomingMessage } from 'node:http'
import type { Header } from './front-words.js'
import { pairsOf, readHead, valuesOf } from './http-head.js'

/** What asks the other side for it; a text says why it is refused. */
export function readUpgrade(request: IncomingMessage): readonly Header[] | string {
  const headers = pairsOf(request.rawHeaders)
  const wanted = valuesOf(headers, 'upgrade')
  if (wanted.length !== 1 || wanted[0]?.toLowerCase() !== 'websocket') return 'a connection may change to a WebSocket and to nothing else'
  if (request.method !== 'GET' || request.httpVersion !== '1.1') return 'a WebSocket begins with a GET of HTTP/1.1'
  const head = readHead(request)
  if (typeof head === 'object' && head.framing !== 'none' && head.framing !== 0) return 'what asks for a WebSocket has no body'
  return [
    ['Connection', 'Upgrade'],
    ['Upgrade', 'websocket'],
  ]
}
