import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import WebSocket from 'ws'
import type { Platform } from '../../src/contract/platform.js'
import { Terminals } from '../../src/server/terminals.js'
import { type OwnServer, ownServer, plain } from './own-server.js'

interface Heard {
  readonly web: WebSocket
  readonly messages: Record<string, unknown>[]
  text(): string
}

describe('terminals over WebSockets', () => {
  let own: OwnServer
  let key: string
  let id: string
  beforeAll(async () => {
    own = await ownServer()
    key = await own.key('red')
    ;({ id } = await own.client(key).create(plain))
  })
  afterAll(() => own[Symbol.asyncDispose]())

  const ticket = async (): Promise<string> => String((await own.ask('/v1/tickets', { key, body: {} })).json().ticket)

  async function open(protocols: readonly string[], headers: Record<string, string> = {}): Promise<Heard> {
    const web = new WebSocket(`ws://localhost:${own.port}/v1/sandboxes/${id}/terminal`, [...protocols], { headers })
    const messages: Record<string, unknown>[] = []
    let text = ''
    web.on('message', (data: Buffer, isBinary) => {
      if (isBinary) text += data.toString()
      else messages.push(JSON.parse(data.toString()) as Record<string, unknown>)
    })
    await new Promise<void>((resolve, reject) => {
      web.once('open', resolve)
      web.once('error', reject)
    })
    return { web, messages, text: () => text }
  }

  test('a page opens one with a ticket, types, resizes and is told how it ended', async () => {
    const { web, messages, text } = await open(['glovebox.v1', `ticket.${await ticket()}`], { origin: 'https://pages.example' })
    expect(web.protocol).toBe('glovebox.v1')
    web.send(JSON.stringify({ type: 'start', command: ['sh'], cols: 90, rows: 20 }))
    await expect.poll(() => messages).toContainEqual(expect.objectContaining({ type: 'started' }))
    web.send(Buffer.from('stty size\n'))
    await expect.poll(text).toContain('20 90')
    web.send(JSON.stringify({ type: 'resize', cols: 100, rows: 30 }))
    web.send(Buffer.from('stty size\n'))
    await expect.poll(text).toContain('30 100')
    web.send(Buffer.from('exit 3\n'))
    await expect.poll(() => messages.at(-1)).toMatchObject({ type: 'ended', ending: { outcome: { kind: 'exited', code: 3 } } })
  })

  test('a ticket is good once', async () => {
    const once = await ticket()
    const { web } = await open(['glovebox.v1', `ticket.${once}`])
    web.close()
    await expect(open(['glovebox.v1', `ticket.${once}`])).rejects.toThrow('401')
  })

  test('leaving one leaves its program, which can be attached to again', async () => {
    const first = await open(['glovebox.v1'], { authorization: `Bearer ${key}` })
    first.web.send(JSON.stringify({ type: 'start', command: ['sh'], tag: 'kept' }))
    await expect.poll(() => first.messages.length).toBe(1)
    first.web.send(Buffer.from('x=42\n'))
    first.web.close()
    const second = await open(['glovebox.v1'], { authorization: `Bearer ${key}` })
    second.web.send(JSON.stringify({ type: 'attach', process: 'kept' }))
    await expect.poll(() => second.messages.length).toBe(1)
    second.web.send(Buffer.from('echo it-is-$x\n'))
    await expect.poll(second.text).toContain('it-is-42')
    second.web.send(JSON.stringify({ type: 'kill' }))
    await expect.poll(() => second.messages.at(-1)).toMatchObject({ type: 'ended', ending: { outcome: { kind: 'killed' } } })
  })

  test.each([
    ['what is no JSON', 'start'],
    ['an unknown kind', '{"type":"dance"}'],
    ['a command that is none', '{"type":"start","command":7}'],
    ['an unknown field', '{"type":"start","comand":["sh"]}'],
  ])('%s as the first word is told, and ends it', async (_, word) => {
    const { web, messages } = await open(['glovebox.v1'], { authorization: `Bearer ${key}` })
    web.send(word)
    await expect.poll(() => messages.at(-1)).toMatchObject({ type: 'error', error: { code: 'invalid' } })
    await expect.poll(() => web.readyState).toBe(WebSocket.CLOSED)
  })
})

test('what is no handshake is refused, and nothing of it is held', async () => {
  const server = createServer()
  const opened = new Promise<void>((resolve, reject) => {
    server.on('upgrade', (request, socket, head) => {
      const platform = { info: () => Promise.resolve() } as unknown as Platform
      new Terminals().open({ request, socket, head }, { platform, sandbox: '', signal: new AbortController().signal }).then(resolve, reject)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: none\r\n\r\n')
  const [heard] = (await once(socket, 'data')) as [Buffer]
  expect(heard.toString()).toMatch(/^HTTP\/1\.1 400 /)
  await opened
  socket.destroy()
  server.close()
})
