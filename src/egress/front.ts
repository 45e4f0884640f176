/**
 * Where the connections of a sandbox's programs arrive. The first bytes tell what is spoken: HTTP or SOCKS5 at the proxy, anything at a direct door, where it
 * is the address that tells where the program meant to go. All ways lead to the same gate, and whoever speaks to the door is judged alike.
 */
import type { Duplex } from 'node:stream'
import type { GuestConnection } from '../contract/egress.js'
import { splitAuthority } from '../policy/network-host.js'
import type { FrontParts } from './forward.js'
import { serveDns } from './front-dns.js'
import { endWith, GuestStream, peek } from './front-stream.js'
import { denialWord, failureWord, type Word, wordBytes } from './front-words.js'
import type { Entrance } from './gate-types.js'
import { type Connect, serveHttp1 } from './http1.js'
import { sniff } from './sniff.js'
import { socks4Refusal } from './socks.js'
import { serveSocks } from './socks-door.js'
import { deniedAlert } from './tls.js'
import { openTunnel } from './tunnel.js'

export interface Front {
  /** Never throws. */
  accept(connection: GuestConnection): void
  /** Ends every connection. */
  close(): void
}

export function createFront(parts: FrontParts): Front {
  const streams = new Set<Duplex>()
  return {
    accept: (connection) => {
      const entrance = parts.gate.enter()
      if (entrance === undefined) {
        connection.closed.catch(() => undefined)
        connection.destroy().catch(() => undefined)
        return
      }
      const stream = new GuestStream(connection)
      streams.add(stream)
      stream.once('close', () => {
        streams.delete(stream)
        entrance.leave()
      })
      serve({ parts, connection, stream, entrance }).catch(() => stream.destroy())
    },
    close: () => {
      for (const stream of streams) stream.destroy()
    },
  }
}

interface Arrival {
  readonly parts: FrontParts
  readonly connection: GuestConnection
  readonly stream: GuestStream
  readonly entrance: Entrance
}

async function serve(arrival: Arrival): Promise<void> {
  const { connection, parts, stream, entrance } = arrival
  await parts.turns.take()
  if (connection.door === 'proxy') {
    await serveProxy(arrival)
    return
  }
  if (connection.port === 53) {
    await serveDns(stream, { parts, entrance })
    return
  }
  await openTunnel({
    parts,
    target: { door: 'direct', host: connection.address, port: connection.port },
    stream,
    entrance,
    accept: () => undefined,
    deny: (denial) => void tell(stream, denialWord(denial)),
    fail: (error) => void tell(stream, failureWord(error)),
  })
}

/** In what the program speaks, if it says anything. */
async function tell(stream: Duplex, word: Word): Promise<void> {
  const speech = await peek(stream, sniff, AbortSignal.timeout(1000))
  if (speech === 'http') endWith(stream, wordBytes(word))
  else if (speech === 'tls') endWith(stream, deniedAlert)
  else stream.destroy()
}

async function serveProxy({ parts, stream, entrance }: Arrival): Promise<void> {
  const speech = await peek(stream, sniff, entrance.signal)
  if (speech === 'http') {
    serveHttp1(stream, { parts, door: 'proxy', origin: undefined, entrance, onConnect: ({ request }) => void serveConnect(parts, { request, stream }) })
    return
  }
  if (speech === 'socks5') {
    await serveSocks(stream, { parts, entrance })
    return
  }
  if (speech === undefined) {
    stream.destroy()
    return
  }
  const denial = parts.gate.refuse(
    { door: 'proxy' },
    speech === 'socks4' ? 'SOCKS4 is not spoken here: SOCKS5 is' : 'what was sent to the proxy is neither HTTP nor SOCKS5',
  )
  endWith(stream, speech === 'socks4' ? socks4Refusal : speech === 'tls' ? deniedAlert : wordBytes(denialWord(denial)))
}

const established = Buffer.from('HTTP/1.1 200 Connection established\r\n\r\n')

async function serveConnect(parts: FrontParts, { request, stream }: Pick<Connect, 'request'> & Pick<Arrival, 'stream'>): Promise<void> {
  const { url = '', headers } = request
  const authority = splitAuthority(url)
  const refusal = authority?.port === undefined ? 'CONNECT names a host and a port' : hostProblem(url, headers.host)
  const entrance = parts.gate.enter()
  if (authority?.port === undefined || refusal !== undefined || entrance === undefined) {
    entrance?.leave()
    endWith(stream, wordBytes(denialWord(parts.gate.refuse({ door: 'proxy', method: 'CONNECT' }, refusal ?? 'too many connections wait to be served'))))
    return
  }
  stream.once('close', () => entrance.leave())
  await openTunnel({
    parts,
    target: { door: 'proxy', host: authority.host, port: authority.port },
    stream,
    entrance,
    accept: () => void stream.write(established),
    deny: (denial) => endWith(stream, wordBytes(denialWord(denial))),
    fail: (error) => endWith(stream, wordBytes(failureWord(error))),
  }).catch(() => stream.destroy())
}

/** Many clients leave its port out. */
function hostProblem(url: string, named: string | undefined): string | undefined {
  const text = url.toLowerCase()
  return named === undefined || [text, text.replace(/:\d+$/, '')].includes(named.toLowerCase()) ? undefined : 'the Host header is not the host of CONNECT'
}
