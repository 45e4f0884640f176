/** What a key has opened ends with the key, and is told why. */
import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import type { Platform } from '../../src/contract/platform.js'
import { localActor } from '../../src/ledger.js'
import { type OwnServer, ownServer, plain } from './own-server.js'

/** Answers slowly and without end, and turns connections into echoes when it is asked to. */
const program = `
import http.server, time
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        if self.headers.get('upgrade'):
            self.wfile.write(b'HTTP/1.1 101 Switching Protocols\\r\\nconnection: upgrade\\r\\nupgrade: websocket\\r\\n\\r\\n'); self.wfile.flush()
        else:
            self.send_response(200); self.send_header('connection', 'close'); self.end_headers()
        self.close_connection = True
        try:
            while True: self.wfile.write(b'more\\n'); self.wfile.flush(); time.sleep(0.02)
        except OSError: pass
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)
print(s.server_address[1], flush=True)
s.serve_forever()
`

let own: OwnServer
let id: string
let port: number
let stays: string
beforeAll(async () => {
  own = await ownServer()
  stays = (await own.ledger.keys.create({ tenant: 'red', scopes: ['run'] }, localActor)).secret
  const client = own.client(stays)
  ;({ id } = await client.create(plain))
  const { output } = await client.start(id, { command: ['/usr/bin/python3', '-c', program], background: true })
  for await (const { bytes } of output) {
    port = Number(new TextDecoder().decode(bytes))
    break
  }
  await (await client.start(id, { command: ['sh', '-c', `mkdir watched; head -c ${fileBytes} /dev/zero > long`] })).ended
  await client.start(id, { command: ['sh', '-c', 'while :; do echo line; sleep 0.02; done'], background: true, tag: 'talker' })
})
afterAll(() => own[Symbol.asyncDispose]())

/** Something that is open: resolves, once it is over, to what was said at its end. */
interface Open {
  readonly over: Promise<string>
  /** Whether it is. */
  isOver(): boolean
}

function watched(over: Promise<string>): Open {
  let isOver = false
  void over.then(() => (isOver = true))
  return { over, isOver: () => isOver }
}

/** What is said last in an answer that goes on and on; `cut` where it was broken off. */
async function streaming(path: string, { key, body, accept, host }: Stream = {}): Promise<Open> {
  const sent = httpRequest({
    host: '127.0.0.1',
    port: own.port,
    path,
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(accept !== undefined && { accept }),
      ...(host !== undefined && { host }),
    },
  })
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  expect(response.statusCode).toBeLessThan(300)
  let text = ''
  response.on('data', (piece: Buffer) => (text = (text + piece.toString()).slice(-300)))
  return watched(
    new Promise((resolve) => {
      response.on('end', () => resolve(text))
      response.on('error', () => resolve('cut'))
    }),
  )
}

interface Stream {
  readonly key?: string
  readonly body?: object
  readonly accept?: string
  readonly host?: string
}

async function terminal(key: string): Promise<Open> {
  const { ticket } = (await own.ask('/v1/tickets', { key, body: {} })).json()
  const web = new WebSocket(`ws://127.0.0.1:${own.port}/v1/sandboxes/${id}/terminal`, ['glovebox.v1', `ticket.${String(ticket)}`])
  await once(web, 'open')
  web.send(JSON.stringify({ type: 'start', command: ['cat'] }))
  await once(web, 'message')
  let last = ''
  web.on('message', (data, isBinary) => {
    if (!isBinary) last = (data as Buffer).toString()
  })
  return watched(new Promise((resolve) => web.on('close', (code) => resolve(`${code} ${last}`))))
}

async function tunnel(client: Platform): Promise<Open> {
  const connection = await client.ports.connect(id, port)
  await connection.write(new TextEncoder().encode('GET / HTTP/1.1\r\nhost: x\r\n\r\n'))
  const reading = async (): Promise<string> => {
    try {
      for await (const _ of connection.output);
      return 'ended'
    } catch (error) {
      return (error as Error).message
    }
  }
  return watched(reading())
}

/** A connection that became the program's own. */
async function upgraded(path: string, headers: Readonly<Record<string, string>>): Promise<Open> {
  const socket = connect(own.port, '127.0.0.1')
  const lines = Object.entries({ host: 'localhost', connection: 'upgrade', upgrade: 'websocket', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  const [head] = (await once(socket, 'data')) as [Buffer]
  expect(head.toString()).toContain('101 Switching')
  socket.resume()
  socket.on('error', () => undefined)
  return watched(once(socket, 'close').then(() => 'cut'))
}

async function uploading(key: string): Promise<Open> {
  const sent = httpRequest({
    host: '127.0.0.1',
    port: own.port,
    path: `/v1/sandboxes/${id}/files/content?path=endless`,
    method: 'PUT',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/octet-stream' },
  })
  const timer = setInterval(() => sent.write('more'), 20)
  const over = new Promise<string>((resolve) => {
    sent.on('error', () => resolve('cut'))
    sent.on('response', (response) => {
      let text = String(response.statusCode)
      response.on('data', (piece: Buffer) => (text += piece.toString()))
      response.on('end', () => resolve(text))
      response.on('error', () => resolve(text))
    })
  })
  await new Promise((resolve) => setTimeout(resolve, 100))
  return watched(over.finally(() => clearInterval(timer)))
}

/** Everything that stays open, opened by one key. */
async function openAll(key: string): Promise<Readonly<Record<string, Open>>> {
  const client = own.client(key)
  const one = `/v1/sandboxes/${id}`
  const endless = { command: ['sh', '-c', 'while :; do echo x; sleep 0.02; done'] }
  const [ndjson, sse] = ['application/x-ndjson', 'text/event-stream']
  const named = new URL((await client.ports.url?.(id, port)) ?? '')
  const file = new URL((await client.files.of(id).url?.('long')) ?? '')
  return {
    'events of all': await streaming('/v1/events', { key, accept: sse }),
    'events of a sandbox': await streaming(`${one}/events`, { key, accept: ndjson }),
    'a run': await streaming('/v1/runs', { key, body: { ...endless, sandbox: plain }, accept: ndjson }),
    'a run that was asked for as a whole': await whole('/v1/runs', key, { ...endless, sandbox: plain }),
    'a program': await streaming(`${one}/processes`, { key, body: endless, accept: sse }),
    'output that is followed': await streaming(`${one}/processes/tag:talker/output`, { key, accept: ndjson }),
    'an execution of code': await streaming(`${one}/code/executions`, {
      key,
      body: { code: 'import time\nwhile True: print(1); time.sleep(0.02)' },
      accept: ndjson,
    }),
    'a watch of files': await streaming(`${one}/files/watch?path=watched`, { key, accept: ndjson }),
    'a file that nobody reads': unread(`${one}/files/content?path=long`, { authorization: `Bearer ${key}` }),
    'a file by a signed address': unread(file.pathname),
    'an upload': await uploading(key),
    'a terminal': await terminal(key),
    'a connection to a port': await tunnel(client),
    'a request to a port': await streaming(`${one}/ports/${port}/`, { key }),
    'a request by a signed name': await streaming('/', { host: named.host }),
    'a WebSocket of a port': await upgraded(`${one}/ports/${port}/`, { authorization: `Bearer ${key}` }),
    'a WebSocket by a signed name': await upgraded('/', { host: named.host }),
  }
}

async function whole(path: string, key: string, body: object): Promise<Open> {
  const asked = own.ask(path, { key, body }).then(
    ({ status, text }) => `${status} ${text}`,
    () => 'cut',
  )
  await new Promise((resolve) => setTimeout(resolve, 300))
  return watched(asked)
}

const fileBytes = 64 * 2 ** 20
let letRead = (): void => undefined
const mayRead = new Promise<void>((resolve) => (letRead = resolve))

/** Asked for, and not read before that is said. */
function unread(path: string, headers: Readonly<Record<string, string>> = {}): Open {
  const socket = connect(own.port, '127.0.0.1')
  const lines = Object.entries({ host: 'localhost', connection: 'close', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  let count = 0
  socket.pause()
  void mayRead.then(() => socket.on('data', (piece) => (count += piece.length)).resume())
  return watched(
    new Promise((resolve) => {
      const over = (): void => resolve(count < 1000 ? 'refused' : count < fileBytes ? 'cut' : 'whole')
      socket.on('error', over).on('close', over)
    }),
  )
}

const ended = async (open: Readonly<Record<string, Open>>): Promise<Readonly<Record<string, string>>> =>
  Object.fromEntries(await Promise.all(Object.entries(open).map(async ([name, { over }]) => [name, await Promise.race([over, patience()])] as const)))

const patience = (): Promise<string> => new Promise((resolve) => setTimeout(() => resolve('is still open'), 20_000).unref())

const told = expect.stringContaining('the key was revoked or has expired') as string

test('all that a key holds open ends when it is revoked, with the reason where there is a word for it, and nothing of another key', async () => {
  const gone = await own.ledger.keys.create({ tenant: 'red', scopes: ['run'] }, localActor)
  const [ofGone, ofStays] = [await openAll(gone.secret), await openAll(stays)]
  expect(Object.entries(ofGone).filter(([, { isOver }]) => isOver())).toEqual([])
  await own.ledger.keys.revoke(gone.id, localActor)
  await ended(Object.fromEntries(Object.entries(ofGone).filter(([name]) => !name.startsWith('a file'))))
  letRead()
  expect(await ended(ofGone)).toEqual({
    'events of all': told,
    'events of a sandbox': told,
    'a run': told,
    'a run that was asked for as a whole': expect.stringMatching(/^401 .*the key was revoked/) as string,
    'a program': told,
    'output that is followed': told,
    'an execution of code': told,
    'a watch of files': told,
    'a file that nobody reads': 'cut',
    'a file by a signed address': 'cut',
    // Whoever still sends may hear of the end before the answer.
    'an upload': expect.stringMatching(/^401.*the key was revoked|^cut$/) as string,
    'a terminal': expect.stringMatching(/^1008 .*the key was revoked/) as string,
    'a connection to a port': told,
    'a request to a port': 'cut',
    'a request by a signed name': 'cut',
    'a WebSocket of a port': 'cut',
    'a WebSocket by a signed name': 'cut',
  })
  const { 'a file that nobody reads': read, 'a file by a signed address': signed, ...open } = ofStays
  expect(Object.entries(open).filter(([, { isOver }]) => isOver())).toEqual([])
  expect([await read?.over, await signed?.over]).toEqual(['whole', 'whole'])
  // What it started and is kept is its tenant's.
  expect((await own.ask(`/v1/sandboxes/${id}`, { key: stays })).status).toBe(200)
  expect(own.lines.filter(({ error, defect }) => error === 'internal' || defect !== undefined)).toEqual([])
})

test('a key whose time is up takes along what it holds open', async () => {
  const expires = new Date(Date.now() + 2500).toISOString()
  const { secret } = await own.ledger.keys.create({ tenant: 'red', scopes: ['run'], expires }, localActor)
  const open = { events: await streaming('/v1/events', { key: secret, accept: 'text/event-stream' }), terminal: await terminal(secret) }
  expect(await ended(open)).toEqual({ events: told, terminal: told })
  expect(Date.now()).toBeGreaterThan(Date.parse(expires))
})

test('a sandbox that a revoked key held is closed', async () => {
  const key = await own.ledger.keys.create({ tenant: 'red', scopes: ['run'] }, localActor)
  const made = String((await own.ask('/v1/sandboxes?hold=true', { key: key.secret, body: plain })).json().id)
  const holding = await streaming(`/v1/sandboxes/${made}/events?hold=true`, { key: key.secret, accept: 'text/event-stream' })
  await own.ledger.keys.revoke(key.id, localActor)
  expect(await holding.over).toEqual(told)
  await expect.poll(async () => (await own.ask(`/v1/sandboxes/${made}`, { key: stays })).status).toBe(410)
})
