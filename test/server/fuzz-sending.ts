/** How requests are sent that a decent program would send otherwise: broken, too large, slow, twice, or left in the middle. */
import { type Agent, request } from 'node:http'
import { connect } from 'node:net'
import type { FuzzRequest, RequestMaker } from './fuzz-requests.js'

export interface Target {
  readonly port: number
  readonly agent: Agent
}

export interface Told {
  /** 0 when the connection ended without an answer. */
  readonly status: number
  readonly text: string
}

const restMs = 20
/** Longer than the server of the test waits for a body. */
const longestMs = 1500

export const mannerNames = ['plain', 'cut', 'twice', 'malformed', 'oversized', 'slow'] as const
export type Manner = (typeof mannerNames)[number]

const manners: Readonly<Record<Manner, (wanted: FuzzRequest, target: Target, maker: RequestMaker) => Promise<readonly Told[]>>> = {
  plain: async (wanted, target) => [await send(wanted, target, {})],
  cut: async (wanted, target) => [await send(wanted, target, { isCut: true })],
  twice: (wanted, target) => Promise.all([send(wanted, target, {}), send(wanted, target, {})]),
  malformed: async (wanted, { port }, maker) => [await sendRaw({ port, maker }, [mangled(asText(wanted), maker)])],
  oversized: async (wanted, { port }, maker) => [await sendRaw({ port, maker }, [swollen(wanted, maker)])],
  slow: async (wanted, { port }, maker) => [await sendRaw({ port, maker }, inPieces(asText(wanted), maker))],
}

export function sendIn(manner: Manner, { wanted, target, maker }: { wanted: FuzzRequest; target: Target; maker: RequestMaker }): Promise<readonly Told[]> {
  return manners[manner](wanted, target, maker)
}

/** Streams are read for a moment. */
function send({ method, target: path, headers, body }: FuzzRequest, { agent, port }: Target, { isCut = false }: { isCut?: boolean }): Promise<Told> {
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent }, (response) => {
      let text = ''
      const over = (): void => resolve({ status: response.statusCode ?? 0, text })
      response.on('data', (piece: Buffer) => {
        if (text.length < 20_000) text += piece.toString()
      })
      response.on('end', over).on('error', over).on('close', over)
      setTimeout(() => response.destroy(), 300).unref()
    })
    sent.on('error', () => resolve({ status: 0, text: '' }))
    sent.on('upgrade', (_, socket) => {
      socket.destroy()
      resolve({ status: 101, text: '' })
    })
    sent.end(body)
    if (isCut) setImmediate(() => sent.destroy())
    setTimeout(() => sent.destroy(), longestMs).unref()
  })
}

function asText({ method, target, headers, body = '' }: FuzzRequest): string {
  const lines = Object.entries({ host: 'localhost', ...headers, 'content-length': String(Buffer.byteLength(body)), connection: 'close' })
  return `${method} ${target} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`
}

/** One wound in a text that was whole. */
function mangled(whole: string, maker: RequestMaker): string {
  const at = maker.below(whole.length)
  const wounds: readonly (() => string)[] = [
    () => whole.slice(0, at),
    () => whole.slice(0, at) + whole.slice(at + 1 + maker.below(20)),
    () => `${whole.slice(0, at)}${maker.pick(['\0', '\r', '\n', '\r\n', '\r\n\r\n', ' ', '\t', 'ÿ', ':', '%', '0'.repeat(100)])}${whole.slice(at)}`,
    () => whole.replace('HTTP/1.1', maker.pick(['HTTP/0.9', 'HTTP/2.0', 'HTTP/1.0', 'HTCPCP/1.0', ''])),
    () => whole.replace(/content-length: \d+/, `content-length: ${maker.pick(['-1', '99999999999999999999', '0x5', '5, 5', '1e3', ''])}`),
    () => whole.replace('connection: close', `connection: close\r\ntransfer-encoding: ${maker.pick(['chunked', 'gzip', 'chunked, chunked', 'xchunked'])}`),
    () => whole.replace('host: localhost', maker.pick(['', 'host: evil.test', 'host: localhost\r\nhost: localhost', 'host: [::1', 'host: localhost:99999999'])),
    () => whole + whole,
  ]
  return maker.pick(wounds)()
}

/** More than anyone needs, of one part. */
function swollen(wanted: FuzzRequest, maker: RequestMaker): string {
  const much = 'x'.repeat(40_000 + maker.below(40_000))
  const parts: readonly (() => FuzzRequest)[] = [
    () => ({ ...wanted, target: `${wanted.target}${wanted.target.includes('?') ? '&' : '?'}q=${much}` }),
    () => ({ ...wanted, headers: { ...wanted.headers, 'x-much': much } }),
    () => ({ ...wanted, headers: { ...wanted.headers, ...Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`x-${index}`, 'y'])) } }),
    () => ({ ...wanted, body: `{"name":"${much.repeat(8)}"}` }),
    () => ({ ...wanted, body: `[${'['.repeat(50_000)}` }),
    () => ({ ...wanted, body: `{${Array.from({ length: 20_000 }, (_, index) => `"n${index}":1`).join(',')}}` }),
  ]
  return asText(maker.pick(parts)())
}

/** With rests between them, the last one at times longer than anyone waits for. */
function inPieces(whole: string, maker: RequestMaker): readonly string[] {
  const cuts = Array.from({ length: 3 }, () => maker.below(whole.length)).sort((one, other) => one - other)
  const pieces = [0, ...cuts].map((from, index) => whole.slice(from, [...cuts, whole.length][index]))
  return maker.chance(0.5) ? pieces.slice(0, -1) : pieces
}

/** From many addresses: a key that was wounded is a wrong one, and those are counted by where they come from. */
function sendRaw({ port, maker }: { readonly port: number; readonly maker: RequestMaker }, pieces: readonly string[]): Promise<Told> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: `127.9.${1 + maker.below(250)}.${1 + maker.below(250)}` })
    let heard = ''
    const timers = [setTimeout(() => socket.destroy(), longestMs)]
    pieces.forEach((piece, index) => timers.push(setTimeout(() => socket.write(piece, 'latin1'), index * restMs)))
    socket.on('data', (piece) => {
      if (heard.length < 20_000) heard += piece.toString('latin1')
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      for (const timer of timers) clearTimeout(timer)
      resolve({ status: Number(/^HTTP\/1\.1 (\d{3})/.exec(heard)?.[1] ?? 0), text: '' })
    })
  })
}
