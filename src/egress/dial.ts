import { connect, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Address } from '../contract/network.js'
import { parseAddress } from '../policy/network-address.js'
import { EgressError } from './egress-error.js'
import type { Intake } from './intake.js'

export interface DialOrder {
  readonly address: Address
  readonly port: number
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly intake: Intake
}

/** A connection to exactly this address, of which nothing is read before it is resumed. Throws EgressError, or the signal's reason. */
export async function dial({ address, port, timeoutMs, signal, intake }: DialOrder): Promise<Socket> {
  signal.throwIfAborted()
  const socket = connect({
    host: address.text,
    port,
    family: address.family,
    autoSelectFamily: false,
    noDelay: true,
    allowHalfOpen: true,
    lookup: refuseLookup,
    onread: intake.onread,
  })
  socket.pause()
  try {
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new EgressError('timed-out', `${address.text} did not answer within ${timeoutMs} ms`)), timeoutMs)
      const end = (error?: Error): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', abort)
        socket.removeAllListeners('connect').removeAllListeners('error')
        if (error === undefined) resolve()
        else reject(error)
      }
      const abort = (): void => end(signal.reason as Error)
      signal.addEventListener('abort', abort, { once: true })
      socket.once('connect', () => end())
      socket.once('error', (error: NodeJS.ErrnoException) => end(new EgressError('unreachable', `${address.text} port ${port}: ${wordsOf(error.code)}`)))
    })
    checkPeer(socket, address)
    return socket
  } catch (error) {
    // Whatever is still to come of it concerns nobody.
    socket.on('error', () => undefined)
    socket.destroy()
    throw error
  }
}

/** What was dialled is an address: nobody has anything to look up. */
function refuseLookup(_name: string, _options: unknown, done: (error: Error, address: string) => void): void {
  done(new EgressError('unresolved', 'only addresses are dialled'), '')
}

function checkPeer(socket: Socket, address: Address): void {
  if (parseAddress(socket.remoteAddress ?? '')?.text !== address.text) throw new EgressError('unreachable', `${address.text} answered from elsewhere`)
}

const words: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there',
  EHOSTUNREACH: 'cannot be reached',
  ENETUNREACH: 'cannot be reached from this host',
  ETIMEDOUT: 'does not answer',
  ECONNRESET: 'broke off',
}

function wordsOf(code: string | undefined): string {
  return words[code ?? ''] ?? `could not be connected to (${code ?? 'unknown'})`
}

const keptMs = 5000

/** Whether an address is one of this host's own, whatever network it belongs to. Interfaces come and go, so what was read is kept for a moment only. */
export function createOwnAddresses(now: () => number): (address: Address) => boolean {
  let texts = new Set<string>()
  let readAt = Number.NEGATIVE_INFINITY
  return ({ text }) => {
    if (now() - readAt > keptMs) {
      texts = new Set(
        Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => parseAddress(address.split('%')[0] ?? '')?.text ?? '')),
      )
      readAt = now()
    }
    return texts.has(text)
  }
}
