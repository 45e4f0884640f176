import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import type { ServerAnswer, ServerRequest } from '../conformance/index.js'

const quietMs = 1500
const mostBytes = 2 ** 20

/** Sends these very bytes, and gives back what comes until the other side ends, or nothing more comes for a while. */
export function talk(port: number, bytes: string | Uint8Array, isOver: (said: Buffer) => boolean = () => false): Promise<Buffer> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = []
    const socket = connect({ host: '127.0.0.1', port })
    const end = (): void => {
      socket.destroy()
      resolve(Buffer.concat(pieces))
    }
    socket.setTimeout(quietMs, end)
    socket.on('error', end)
    socket.on('close', end)
    socket.on('data', (piece) => {
      pieces.push(piece)
      const said = Buffer.concat(pieces)
      if (said.length > mostBytes || isOver(said)) end()
    })
    socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  })
}

/** One request on a connection of its own; of a reply that has no end, its head is enough. */
export async function askServer(port: number, { method, path, headers = {}, body, key }: ServerRequest): Promise<ServerAnswer> {
  const sent = typeof body === 'string' ? Buffer.from(body) : Buffer.from(body ?? '')
  const all: Record<string, string> = {
    host: `127.0.0.1:${port}`,
    connection: 'close',
    ...(body !== undefined && { 'content-type': 'application/json', 'content-length': String(sent.length) }),
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    ...headers,
  }
  const head = `${method} ${path} HTTP/1.1\r\n${Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`
  const said = (await talk(port, Buffer.concat([Buffer.from(head, 'latin1'), sent]), isEndless)).toString()
  const [top = '', ...rest] = said.split('\r\n\r\n')
  const [statusLine = '', ...lines] = top.split('\r\n')
  return {
    status: Number(statusLine.split(' ')[1] ?? 0),
    headers: Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()])),
    body: rest.join('\r\n\r\n'),
  }
}

/** A stream of events, or a connection that became another. */
function isEndless(said: Buffer): boolean {
  const head = said.toString('latin1', 0, 4096)
  return head.includes('\r\n\r\n') && (/^HTTP\/1\.1 101/.test(head) || /content-type: (text\/event-stream|application\/x-ndjson)/i.test(head))
}

/** Local addresses of the listeners at this port, as the kernel tells. */
export function listeningAt(port: number): string[] {
  return ['tcp', 'tcp6'].flatMap((kind) => {
    try {
      const rows = readFileSync(`/proc/net/${kind}`, 'latin1').split('\n').slice(1)
      return rows.flatMap((row) => {
        const [, local = '', , state] = row.trim().split(/\s+/)
        const [address = '', hex = ''] = local.split(':')
        return state === '0A' && Number.parseInt(hex, 16) === port ? [address] : []
      })
    } catch {
      return []
    }
  })
}
