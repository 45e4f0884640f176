/** What a program behind a port answers is believed in nothing that concerns the server, its address or another's answer. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { encodeFrame, frameTypes } from '../../src/contract/wire/frames.js'
import { askRaw, type OwnServer, ownServer, plain } from './own-server.js'

/** Says, to whoever asks for `/N`, the Nth of the answers that it was given, and no more. */
const program = `
import base64, json, socket, sys, threading
answers = [base64.b64decode(each) for each in json.loads(sys.argv[1])]
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(50); print(s.getsockname()[1], flush=True)
def serve(c):
    heard = b''
    while b'\\r\\n\\r\\n' not in heard:
        piece = c.recv(65536)
        if not piece: return
        heard += piece
    c.sendall(answers[int(heard.split(b' ')[1].decode().strip('/'))]); c.close()
while True: threading.Thread(target=serve, args=(s.accept()[0],)).start()
`

const ok = 'content-length: 2\r\n\r\nok'
const answers: readonly (readonly [name: string, answer: string, status: number])[] = [
  ['a plain one', `HTTP/1.1 200 OK\r\n${ok}`, 200],
  ['one with a control character in a header', `HTTP/1.1 200 OK\r\nx-a: a\x01b\r\n${ok}`, 502],
  ['a header that would be two', `HTTP/1.1 200 OK\r\nx-a: a\rset-cookie: z=1\r\n${ok}`, 502],
  ['two lengths', `HTTP/1.1 200 OK\r\ncontent-length: 5\r\n${ok}`, 502],
  ['a length and chunks', `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n${ok}`, 502],
  ['two answers', `HTTP/1.1 200 OK\r\n${ok}HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecond`, 200],
  ['a status that is none', `HTTP/1.1 000 X\r\n${ok}`, 502],
  ['a change of protocol that nobody asked for', 'HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nok', 502],
  ['headers without end', `HTTP/1.1 200 OK\r\nx-a: ${'a'.repeat(60_000)}\r\n${ok}`, 502],
  ['no HTTP', '\0\x01garbage', 502],
  ['nothing', '', 502],
  [
    'words of ours, and for all of our address',
    `HTTP/1.1 200 OK\r\nglovebox-request: forged\r\nclear-site-data: "*"\r\nstrict-transport-security: max-age=9\r\nalt-svc: h2=":1"\r\nset-cookie: z=1\r\n${ok}`,
    200,
  ],
  ['one that breaks off', 'HTTP/1.1 200 OK\r\ncontent-length: 200\r\n\r\nok', 200],
  ['a cookie behind its chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: set-cookie\r\n\r\n2\r\nok\r\n0\r\nset-cookie: z=1\r\n\r\n', 200],
]

let own: OwnServer
let key: string
let path: string
beforeAll(async () => {
  own = await ownServer()
  key = await own.key('red')
  const client = own.client(key)
  const { id } = await client.create(plain)
  const coded = JSON.stringify(answers.map(([, answer]) => Buffer.from(answer, 'latin1').toString('base64')))
  const { output } = await client.start(id, { command: ['/usr/bin/python3', '-c', program, coded], background: true })
  for await (const { bytes } of output) {
    path = `/v1/sandboxes/${id}/ports/${Number(new TextDecoder().decode(bytes))}`
    break
  }
})
afterAll(() => own[Symbol.asyncDispose]())

const forbidden = /set-cookie|forged|clear-site-data|strict-transport|alt-svc|second/i

test.each(answers.map(([name, , status], index) => [name, index, status] as const))(
  '%s, to a request and to a wish to become another',
  async (_, index, status) => {
    for (const more of ['connection: close', 'connection: upgrade\r\nupgrade: websocket']) {
      if (index === 7 && more !== 'connection: close') continue
      const text = await askRaw(own.port, `GET ${path}/${index} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\n${more}\r\n\r\n`)
      expect([more, text.slice(0, 12), forbidden.exec(text)]).toEqual([more, `HTTP/1.1 ${status}`, null])
      if (status === 200) expect(text).toMatch(/content-security-policy: sandbox/)
    }
    expect(own.lines.filter(({ error, defect }) => error === 'internal' || defect !== undefined)).toEqual([])
  },
)

test('a piece that is announced as longer than any is not waited for', async () => {
  const socket = connect(own.port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\nconnection: upgrade\r\nupgrade: glovebox-tunnel\r\n\r\n`)
  const [head] = (await once(socket, 'data')) as [Buffer]
  expect(head.toString()).toContain('101 Switching')
  const frame = Buffer.from(encodeFrame(frameTypes.data, new Uint8Array()))
  frame.writeUInt32BE(2 ** 25, 1)
  socket.resume()
  socket.write(frame)
  await once(socket, 'close')
})
