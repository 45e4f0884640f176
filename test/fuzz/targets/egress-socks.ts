import { sniff } from '../../../src/egress/sniff.js'
import { parseSocksGreeting, parseSocksRequest } from '../../../src/egress/socks.js'
import { type FuzzTarget, holds, isSame } from '../target.js'

/** What a program speaks, and SOCKS: what follows a request changes nothing of it, and no part of one is another. */
export const target: FuzzTarget = {
  name: 'egress-socks',
  most: 600,
  seeds: [
    Buffer.of(5, 1, 0),
    Buffer.of(5, 1, 0, 1, 10, 0, 0, 1, 1, 187),
    Buffer.concat([Buffer.of(5, 1, 0, 3, 11), Buffer.from('example.org'), Buffer.of(0, 80)]),
    Buffer.concat([Buffer.of(5, 1, 0, 4), Buffer.alloc(16, 1), Buffer.of(1, 187)]),
    Buffer.of(4, 1, 0, 80, 1, 2, 3, 4, 0),
    'GET / HTTP/1.1\r\n',
    '\r\nCONNECT a:1 HTTP/1.1',
    Buffer.of(5, 3, 0, 1, 0, 0, 0, 0, 0, 0),
  ],
  run(given) {
    const bytes = Buffer.from(given)
    const speech = sniff(bytes)
    if (speech !== 'more') isSame(sniff(Buffer.concat([bytes, Buffer.from('x')])), speech, 'what is told stays')
    const greeting = parseSocksGreeting(bytes)
    if (greeting !== 'more') holds(greeting.length <= bytes.length && greeting.length >= 2, 'a greeting is there as a whole')
    const request = parseSocksRequest(bytes)
    if (request === 'more') return
    isSame(parseSocksRequest(Buffer.concat([bytes, Buffer.of(0xff)])), request, 'what follows changes nothing')
    if (request.kind !== 'connect') return
    holds(request.length <= bytes.length && request.port > 0 && request.host.length <= 255, 'a request is there as a whole')
    for (let length = 0; length < request.length; length += 1) holds(parseSocksRequest(bytes.subarray(0, length)) === 'more', 'a part of it is too little')
  },
}
