/**
 * A connection that leads to one host: after CONNECT, after SOCKS, at a direct door. What the rules let pass unread is carried as it is, once it is known that
 * TLS is for the same host; where requests are to be judged, TLS is terminated and each request asked for.
 *
 *  80                      HTTP, each request judged; or TLS
 *  443                     TLS
 *  any other port          anything; if it is TLS, for the same host
 *  where rules look inside TLS, which is terminated, or HTTP; nothing else, at whatever port
 */
import type { Duplex } from 'node:stream'
import type { FrontParts } from './forward.js'
import { originOf, type Setting } from './front-setting.js'
import { endWith, type GuestStream, peek, pour } from './front-stream.js'
import { failureText } from './front-words.js'
import type { Denial, Entrance, Outlook, Permit, Target } from './gate-types.js'
import { type Hello, parseHello } from './hello.js'
import { serveHttp1 } from './http1.js'
import { serveHttp2 } from './http2.js'
import type { MeteredStream } from './metered-stream.js'
import { sniff } from './sniff.js'
import { deniedAlert, judgeHello, secureGuest } from './tls.js'

export interface Tunnel {
  readonly parts: FrontParts
  readonly target: Target
  readonly stream: GuestStream
  readonly entrance: Entrance
  /** Tells the program that it may go on. */
  accept(): void
  /** Tells it that it may not, and ends the connection. */
  deny(denial: Denial): void
  /** Tells it that there is no way, and ends the connection. */
  fail(error: unknown): void
}

type Scheme = 'tls' | 'tcp'

export async function openTunnel(tunnel: Tunnel): Promise<void> {
  const { parts, target } = tunnel
  const outlook = parts.gate.look(target)
  if (!outlook.allowed) {
    tunnel.deny(outlook)
    return
  }
  if (!(outlook.terminate || target.port === 80)) {
    await passThrough(tunnel, target.port === 443 ? 'tls' : 'tcp')
    return
  }
  tunnel.accept()
  await lookInside(tunnel, outlook)
}

/** Asked for and dialled before the program is told to go on, so that what fails can be told. */
async function passThrough(tunnel: Tunnel, scheme: Scheme): Promise<void> {
  const { parts, target, stream } = tunnel
  // It has said what it wants. How long it takes to get that is the gate's affair, and whoever decides may be a person.
  tunnel.entrance.leave()
  const gone = new AbortController()
  stream.once('close', () => gone.abort(new Error('the program went away')))
  const permit = await parts.gate.ask({ ...target, scheme }, gone.signal)
  if (!permit.allowed) {
    again(tunnel, () => tunnel.deny(permit))
    return
  }
  if (permit.terminate) {
    permit.finish()
    tunnel.accept()
    const entrance = again(tunnel)
    if (entrance) await lookInside({ ...tunnel, entrance }, permit)
    return
  }
  let upstream: MeteredStream
  try {
    upstream = (await permit.dial()).stream
  } catch (error) {
    permit.finish({ verdict: 'failed', reason: failureText(error) })
    again(tunnel, () => tunnel.fail(error))
    return
  }
  upstream.on('error', () => undefined)
  tunnel.accept()
  await carry(tunnel, { permit, scheme, upstream })
}

/** A connection without a place is again one of those of which there may be only so many, until its end. */
function again({ parts, stream }: Tunnel, act?: () => void): Entrance | undefined {
  const entrance = parts.gate.enter()
  if (entrance === undefined) {
    stream.destroy()
    return undefined
  }
  stream.once('close', () => entrance.leave())
  act?.()
  return entrance
}

interface Passage {
  readonly permit: Permit
  readonly scheme: Scheme
  readonly upstream: MeteredStream
}

/** The other side may speak first; nothing of the program's goes to it before it is known for whom it is. */
async function carry({ stream }: Tunnel, { permit, scheme, upstream }: Passage): Promise<void> {
  const stop = (): void => {
    stream.destroy()
    upstream.destroy()
  }
  permit.signal.addEventListener('abort', stop, { once: true })
  // Until both directions are joined; from then on what still waits to be read must not be lost.
  const drop = (): void => {
    stream.destroy()
  }
  upstream.once('close', drop)
  // In TLS it never does.
  const down = scheme === 'tcp' ? pour(upstream, stream) : undefined
  down?.catch(stop)
  try {
    const refusal = await judgeFirst(stream, { permit, scheme })
    upstream.off('close', drop)
    if (refusal === undefined) {
      await Promise.all([down ?? pour(upstream, stream), pour(stream, upstream)])
      permit.finish()
    } else {
      permit.finish({ verdict: 'denied', reason: refusal })
      upstream.destroy()
      if (down) stream.destroy()
      else endWith(stream, deniedAlert)
    }
  } catch (error) {
    // Why the gate has ended it, the gate knows best.
    permit.finish(permit.signal.aborted ? {} : { verdict: 'failed', reason: failureText(error) })
    stop()
  }
}

/** Why what the program says first may not go on; undefined when it may. */
async function judgeFirst(stream: Duplex, { permit, scheme }: Pick<Passage, 'permit' | 'scheme'>): Promise<string | undefined> {
  const first = await peek(stream, parseFirst)
  if (first?.kind === 'other') return scheme === 'tls' ? `what was sent to ${permit.hostText} port ${permit.port} is not TLS` : undefined
  if (first !== undefined) return judgeHello(first, permit)
  // Whoever listens only need not say anything; what was begun and not understood goes nowhere.
  return scheme === 'tcp' && stream.readableEnded ? undefined : 'what the program began to say could not be understood'
}

function parseFirst(bytes: Buffer): Hello | { readonly kind: 'other' } | 'more' {
  const [type, version] = bytes
  if (type !== 0x16) return { kind: 'other' }
  if (version === undefined) return 'more'
  return version === 3 ? parseHello(bytes) : { kind: 'other' }
}

/** TLS is terminated, or each request of HTTP judged. */
async function lookInside(tunnel: Tunnel, outlook: Outlook): Promise<void> {
  const { parts, target, stream, entrance } = tunnel
  const speech = await peek(stream, sniff, entrance.signal)
  if (speech === 'http') {
    serveHttp1(stream, settingOf(tunnel, { scheme: 'http', outlook }))
    return
  }
  if (speech === 'tls' && !outlook.terminate) {
    await passThrough({ ...tunnel, accept: () => undefined, deny: () => tunnelDenied(stream) }, 'tls')
    return
  }
  if (speech === 'tls') {
    await terminate(tunnel, outlook)
    return
  }
  if (speech !== undefined) parts.gate.refuse({ ...target, scheme: 'tcp' }, `what was sent to ${outlook.hostText} port ${target.port} is neither TLS nor HTTP`)
  stream.destroy()
}

function tunnelDenied(stream: Duplex): void {
  endWith(stream, deniedAlert)
}

async function terminate(tunnel: Tunnel, outlook: Outlook): Promise<void> {
  const { parts, target, stream, entrance } = tunnel
  const hello = await peek(stream, parseHello, entrance.signal)
  const refusal = hello && judgeHello(hello, outlook)
  if (hello === undefined || refusal !== undefined) {
    if (refusal !== undefined) parts.gate.refuse({ ...target, scheme: 'tls' }, refusal)
    endWith(stream, deniedAlert)
    return
  }
  const stop = (): void => void stream.destroy()
  entrance.signal.addEventListener('abort', stop, { once: true })
  await parts.turns.take()
  const secured = stream.destroyed ? undefined : await secureGuest(stream, { authority: parts.authority(), host: outlook.host })
  entrance.signal.removeEventListener('abort', stop)
  if (secured === undefined) {
    stream.destroy()
    return
  }
  const setting = settingOf(tunnel, { scheme: 'https', outlook })
  if (secured.alpnProtocol === 'h2') serveHttp2(secured, setting)
  else serveHttp1(secured, setting)
}

function settingOf({ parts, target, entrance }: Tunnel, { scheme, outlook }: { scheme: 'http' | 'https'; outlook: Outlook }): Setting {
  return { parts, door: target.door, origin: originOf(target, { scheme, outlook }), entrance }
}
