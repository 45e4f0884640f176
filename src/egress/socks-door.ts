import type { FrontParts } from './forward.js'
import { endWith, type GuestStream, peek, skip } from './front-stream.js'
import type { Entrance } from './gate-types.js'
import { EgressError } from './egress-error.js'
import { parseSocksGreeting, parseSocksRequest, type SocksReply, socksNoAuthentication, socksNoneAcceptable, socksReply } from './socks.js'
import { openTunnel } from './tunnel.js'

/** SOCKS5 towards a program. */
export async function serveSocks(stream: GuestStream, { parts, entrance }: { readonly parts: FrontParts; readonly entrance: Entrance }): Promise<void> {
  const greeting = await peek(stream, parseSocksGreeting, entrance.signal)
  if (greeting === undefined) return void stream.destroy()
  skip(stream, greeting.length)
  if (!greeting.isAcceptable) {
    parts.gate.refuse({ door: 'proxy' }, 'SOCKS5 with a password: none is asked for here')
    endWith(stream, socksNoneAcceptable)
    return
  }
  stream.write(socksNoAuthentication)
  const request = await peek(stream, parseSocksRequest, entrance.signal)
  if (request === undefined) return void stream.destroy()
  if (request.kind === 'refused') {
    parts.gate.refuse({ door: 'proxy' }, request.reason)
    endWith(stream, socksReply(request.reply))
    return
  }
  skip(stream, request.length)
  await openTunnel({
    parts,
    target: { door: 'proxy', host: request.host, port: request.port },
    stream,
    entrance,
    accept: () => void stream.write(socksReply('succeeded')),
    deny: () => endWith(stream, socksReply('notAllowed')),
    fail: (error) => endWith(stream, socksReply(replyTo(error))),
  })
}

const replies: Partial<Record<EgressError['code'], SocksReply>> = { unreachable: 'hostUnreachable', 'timed-out': 'hostUnreachable' }

function replyTo(error: unknown): SocksReply {
  return (error instanceof EgressError ? replies[error.code] : undefined) ?? 'failed'
}
