import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient } from '../../src/client/index.js'
import type { Platform } from '../../src/contract/platform.js'
import { type Answer, type OwnServer, ownServer, plain } from './own-server.js'

/** Tells what it was asked, sets a cookie, and turns a connection into an echo when it is asked to. */
const program = `
import http.server, json, sys
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def whole(self):
        if not self.headers.get('transfer-encoding'): return self.rfile.read(int(self.headers.get('content-length') or 0))
        pieces = []
        while not pieces or pieces[-1]:
            pieces.append(self.rfile.read(int(self.rfile.readline(), 16))); self.rfile.readline()
        return b''.join(pieces)
    def do_GET(self):
        if self.headers.get('upgrade'):
            self.wfile.write(b'HTTP/1.1 101 Switching Protocols\\r\\nconnection: upgrade\\r\\nupgrade: websocket\\r\\n\\r\\n'); self.wfile.flush()
            self.close_connection = True
            while True:
                got = self.connection.recv(1000)
                if not got: return
                self.connection.sendall(got.upper())
        body = json.dumps({'path': self.path, 'method': self.command, 'headers': {k.lower(): v for k, v in self.headers.items()}, 'body': self.whole().decode()}).encode()
        self.send_response(200); self.send_header('set-cookie', 'a=b'); self.send_header('content-type', 'text/html'); self.send_header('content-length', str(len(body))); self.end_headers(); self.wfile.write(body)
    do_POST = do_GET
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)
print(s.server_address[1], flush=True)
s.serve_forever()
`

describe('ports over HTTP', () => {
  let own: OwnServer
  let key: string
  let client: Platform
  let id: string
  let port: number
  beforeAll(async () => {
    own = await ownServer()
    key = await own.key('red')
    client = own.client(key)
    ;({ id } = await client.create(plain))
    const { output } = await client.start(id, { command: ['/usr/bin/python3', '-c', program], background: true })
    for await (const { bytes } of output) {
      port = Number(new TextDecoder().decode(bytes))
      break
    }
  })
  afterAll(() => own[Symbol.asyncDispose]())

  const told = (answer: Answer): { path: string; method: string; headers: Record<string, string>; body: string } => JSON.parse(answer.text) as never

  test('a request with a key reaches the program, which sees neither the key nor anything of ours', async () => {
    const answer = await own.ask(`/v1/sandboxes/${id}/ports/${port}/a/b?c=d`, { key, body: 'hello', headers: { cookie: 'x=y', 'glovebox-tenant': 'red' } })
    expect(told(answer)).toMatchObject({ path: '/a/b?c=d', method: 'POST', body: 'hello' })
    const { authorization, cookie, host, ...rest } = told(answer).headers
    expect([authorization, cookie, host, rest['glovebox-tenant']]).toEqual([undefined, undefined, `localhost:${port}`, undefined])
  })

  test('a page of a guest’s beside ours has no origin, and leaves no cookie', async () => {
    const { headers } = await own.ask(`/v1/sandboxes/${id}/ports/${port}/`, { key })
    expect([headers['set-cookie'], headers['content-security-policy']]).toEqual([undefined, expect.stringMatching(/sandbox(?!.*allow-same-origin)/)])
  })

  test('S-14 where a body ends is told to the program by whatever method, so that it is no request of its own', async () => {
    const headers = { 'transfer-encoding': 'chunked' }
    const chunked = told(await own.ask(`/v1/sandboxes/${id}/ports/${port}/`, { key, method: 'GET', body: 'GET / HTTP/1.1\r\n\r\n', headers }))
    expect([chunked.method, chunked.body]).toEqual(['GET', 'GET / HTTP/1.1\r\n\r\n'])
    const named = { connection: 'close, content-length', 'content-length': '5' }
    const counted = told(await own.ask(`/v1/sandboxes/${id}/ports/${port}/`, { key, method: 'GET', body: 'hello', headers: named }))
    expect([counted.method, counted.body]).toEqual(['GET', 'hello'])
  })

  test('a port that nothing listens on is not found', async () => {
    expect((await own.ask(`/v1/sandboxes/${id}/ports/1/`, { key })).status).toBe(404)
  })

  test('a signed address leads there without a key, until it expires, and to nothing else', async () => {
    const url = new URL((await client.ports.url?.(id, port, { expires: 400 })) ?? '')
    const host = url.host
    const byName = (path: string, more: Record<string, string> = {}): Promise<Answer> => own.ask(path, { headers: { host, ...more } })
    expect(told(await byName('/x?y')).path).toBe('/x?y')
    // Under a name of its own what is said of who asks is said to the program.
    expect(told(await byName('/', { authorization: 'Bearer its-own' })).headers.authorization).toBe('Bearer its-own')
    const [itsOwn, anothers] = [await byName('/', { origin: `http://${host}` }), await byName('/', { origin: 'https://evil.test' })]
    expect([itsOwn.status, itsOwn.headers['access-control-allow-origin'], anothers.status]).toEqual([200, undefined, 403])
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect((await byName('/')).status).toBe(401)
  })

  test('M-17 a name that was not signed, or is another port’s or sandbox’s, is refused', async () => {
    const { host } = new URL((await client.ports.url?.(id, port)) ?? '')
    const other = await client.create(plain)
    const spoofs = [
      host.replace(String(port), '22'),
      host.replace(id, other.id),
      host.replace(/-[a-z2-7]{26}\./, `-${'a'.repeat(26)}.`),
      `${port}-${id}.boxes.test`,
    ]
    for (const spoof of spoofs) expect([spoof, (await own.ask('/', { headers: { host: spoof } })).status]).toEqual([spoof, 401])
    expect((await own.ask('/', { headers: { host } })).status).toBe(200)
  })

  test('a signed address of a file reads or writes it, and does nothing else', async () => {
    const files = client.files.of(id)
    const put = new URL((await files.url?.('note.txt', { method: 'PUT' })) ?? '')
    expect((await own.ask(put.pathname, { method: 'PUT', body: 'signed', headers: { 'content-type': 'application/octet-stream' } })).status).toBe(200)
    const get = new URL((await files.url?.('note.txt')) ?? '')
    expect(await own.ask(get.pathname)).toMatchObject({ status: 200, text: 'signed', headers: { 'content-disposition': 'attachment' } })
    expect((await own.ask(get.pathname, { method: 'PUT', body: 'x', headers: { 'content-type': 'application/octet-stream' } })).status).toBe(405)
    const [head = '', token = ''] = get.pathname.split('/v1/signed/')
    expect((await own.ask(`${head}/v1/signed/${token.replace(/^./, 'x')}`)).status).toBe(401)
    expect(JSON.stringify(own.lines)).not.toContain(token.slice(0, 40))
  })

  test('an upgrade is passed to the program, both ways', async () => {
    const socket = connect(own.port, '127.0.0.1')
    socket.write(
      `GET /v1/sandboxes/${id}/ports/${port}/ws HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`,
    )
    let heard = ''
    socket.on('data', (piece) => {
      heard += piece.toString()
    })
    await expect.poll(() => heard).toContain('101 Switching')
    socket.write('shout')
    await expect.poll(() => heard).toContain('SHOUT')
    socket.destroy()
  })

  test('S-08 an upgrade without a key, with one in the address, or from another’s page is refused', async () => {
    const upgrade = async (path: string, head: string): Promise<string> => {
      const socket = connect(own.port, '127.0.0.1')
      socket.write(
        `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n${head}\r\n`,
      )
      const [first] = (await once(socket, 'data')) as [Buffer]
      socket.destroy()
      return first.toString().split('\r\n')[0] ?? ''
    }
    const terminal = `/v1/sandboxes/${id}/terminal`
    expect(await upgrade(terminal, '')).toContain('401')
    expect(await upgrade(`${terminal}?key=${key}`, '')).toContain('401')
    expect(await upgrade(terminal, `authorization: Bearer ${key}\r\norigin: https://evil.test\r\n`)).toContain('403')
    expect(await upgrade(terminal, 'sec-websocket-protocol: glovebox.v1, ticket.aaaaaaaaaaaaaaaaaaaaaaaaaa\r\n')).toContain('401')
    expect(await upgrade(`/v1/sandboxes/${id}/ports/${port}/`, '')).toContain('401')
    expect(JSON.stringify(own.lines)).not.toContain(key)
  })

  test('by what browsers have, the same is reached', async () => {
    const web = createClient({ url: own.url, key })
    expect((await web.info(id)).id).toBe(id)
    const run = await web.pools.run({ spec: plain }, { command: ['echo', 'from a browser'] }, { receipt: false })
    let printed = ''
    for await (const { bytes } of run.program.output) printed += new TextDecoder().decode(bytes)
    expect([printed, (await run.program.ended).outcome]).toEqual(['from a browser\n', { kind: 'exited', code: 0 }])
    await web.files.of(id).write(
      'web.txt',
      (async function* () {
        yield new TextEncoder().encode('web')
        await Promise.resolve()
      })(),
    )
    expect((await web.files.of(id).stat('web.txt'))?.size).toBe(3)
    await expect(web.ports.forward(id, port)).rejects.toMatchObject({ code: 'unsupported' })
  })
})
