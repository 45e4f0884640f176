/** A gate with real servers, a real resolver and a real server of names, all on addresses of the host's loopback. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type Address, type NetworkInput, type NetworkRules, networkSchema } from '../../src/contract/network.js'
import { parseQuery, queryTypes, responseCodes, writeReply } from '../../src/egress/dns-message.js'
import { createGate, type GateOrder } from '../../src/egress/gate.js'
import type { Denial, Gate, Permit } from '../../src/egress/gate-types.js'
import { createResolver, type Resolver } from '../../src/egress/resolver.js'
import { parseAddress } from '../../src/policy/network-address.js'
import { networkRules } from '../../src/policy/network-rules.js'

const loopback = ['127.0.0.0/8', '::1/128']

export function rulesOf(input: Exclude<NetworkInput, false>, named: readonly string[] = loopback): NetworkRules {
  const network = networkSchema.parse(input)
  if (network === false) throw new Error('is off')
  return networkRules(network, named)
}

export interface NameServer extends AsyncDisposable {
  readonly resolver: Resolver
  /** What was asked, in this order, as `a example.org`. */
  readonly asked: readonly string[]
}

type Answers = Readonly<Record<string, readonly string[] | 'silence' | 'failure'>>

/** Answers by this table, where a function is asked anew each time; whatever is not in it does not exist. */
export async function serveNames(answers: Answers | ((name: string) => Answers[string] | undefined), timeoutMs = 2000): Promise<NameServer> {
  const socket = createSocket('udp4')
  const asked: string[] = []
  socket.on('message', (message, peer) => {
    const query = parseQuery(message)
    if (query === 'silence' || 'code' in query) return
    asked.push(`${query.type === queryTypes.a ? 'a' : query.type === queryTypes.aaaa ? 'aaaa' : query.type} ${query.name}`)
    const found = typeof answers === 'function' ? answers(query.name) : answers[query.name]
    if (found === 'silence') return
    const family = query.type === queryTypes.a ? 4 : 6
    const addresses = typeof found === 'object' ? found.map(parseAddress).filter((address): address is Address => address?.family === family) : []
    const code = found === undefined ? responseCodes.unknownName : found === 'failure' ? responseCodes.refused : responseCodes.ok
    socket.send(writeReply(query, code, addresses), peer.port, peer.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    resolver: createResolver({ servers: [`127.0.0.1:${socket.address().port}`], timeoutMs }),
    asked,
    [Symbol.asyncDispose]: async () => {
      socket.close()
      await once(socket, 'close')
    },
  }
}

export interface TestServer extends AsyncDisposable {
  readonly port: number
  /** How many connections have arrived. */
  readonly count: number
  readonly sockets: readonly Socket[]
}

export async function serve(onConnection: (socket: Socket) => void, address = '127.0.0.1', port = 0): Promise<TestServer> {
  const sockets: Socket[] = []
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    onConnection(socket)
  })
  server.listen(port, address)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    get count() {
      return sockets.length
    },
    sockets,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

export const echo = (socket: Socket): void => void socket.pipe(socket)

export interface TestGate extends AsyncDisposable {
  readonly gate: Gate
  /** Asks as a program that knows only where it wants to go. */
  ask(host: string, port: number): Promise<Permit | Denial>
}

export function openGate(order: Partial<GateOrder> & Pick<GateOrder, 'rules'>): TestGate {
  const resolver: Resolver = { resolve: (name) => Promise.reject(new Error(`nobody resolves ${name}`)) }
  const gate = createGate({ sandbox: 'abc', resolver, ...order })
  return {
    gate,
    ask: (host, port) => gate.ask({ door: 'proxy', host, port, scheme: 'tcp' }),
    [Symbol.asyncDispose]: () => gate.close(),
  }
}

export function permitted(answer: Permit | Denial): Permit {
  if (!answer.allowed) throw new Error(answer.message)
  return answer
}

export function denied(answer: Permit | Denial): Denial {
  if (!answer.allowed) return answer
  answer.finish()
  throw new Error('was allowed')
}

/** Unlike `once`, whatever error comes before. */
export function closing(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    stream.once('close', () => resolve())
  })
}

export async function allOf<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}
