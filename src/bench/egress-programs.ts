/** The other side, a process of its own: `ok` for anything, and as many bytes as are asked for. Prints its port. */
export const server = `
const { readFileSync } = require('node:fs')
const [cert, key] = process.argv.slice(1).map((path) => readFileSync(path))
const piece = Buffer.alloc(256 * 1024)
const server = require('node:https').createServer({ cert, key, keepAliveTimeout: 600000 }, (request, response) => {
  const bytes = Number(/^\\/bytes\\/(\\d+)$/.exec(request.url)?.[1] ?? 0)
  response.setHeader('content-length', bytes || 2)
  if (bytes === 0) return response.end('ok')
  let left = bytes
  const pour = () => {
    while (left > 0) {
      const part = piece.subarray(0, Math.min(left, piece.length))
      left -= part.length
      if (!response.write(part)) return response.once('drain', pour)
    }
    response.end()
  }
  pour()
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.stdin.on('end', () => process.exit()).resume()
`

/** The same client on both sides of the wall: over the proxy that its environment names, or straight there. Prints JSON. */
export const client = `
import json, os, re, socket, ssl, sys, time
mode, host, port, amount = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
proxy = re.match(r'http://([^:]+):(\\d+)', os.environ.get('HTTPS_PROXY', ''))
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE

def head(connection):
    data = b''
    while b'\\r\\n\\r\\n' not in data:
        piece = connection.recv(65536)
        if not piece: raise SystemExit('ended early: %r' % data[:200])
        data += piece
    return data

def connect():
    connection = socket.create_connection((proxy[1], int(proxy[2])) if proxy else ('127.0.0.1', port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if proxy:
        connection.sendall(b'CONNECT %s:%d HTTP/1.1\\r\\nHost: %s:%d\\r\\n\\r\\n' % (host.encode(), port, host.encode(), port))
        answer = head(connection)
        if b' 200 ' not in answer.split(b'\\r\\n')[0]: raise SystemExit(answer[:300].decode())
    return context.wrap_socket(connection, server_hostname=host)

def ask(connection, path='/'):
    connection.sendall(b'GET %s HTTP/1.1\\r\\nHost: %s:%d\\r\\n\\r\\n' % (path.encode(), host.encode(), port))

def finish(connection):
    data = head(connection)
    if not data.startswith(b'HTTP/1.1 200'): raise SystemExit(data[:300].decode())
    length = int(re.search(rb'(?i)content-length: (\\d+)', data)[1])
    left = length - len(data.split(b'\\r\\n\\r\\n', 1)[1])
    buffer = bytearray(1 << 20)
    while left > 0:
        got = connection.recv_into(buffer)
        if got == 0: raise SystemExit('ended early')
        left -= got

if mode == 'latency':
    connection, samples = connect(), []
    for turn in range(amount + 20):
        begin = time.perf_counter()
        ask(connection)
        finish(connection)
        if turn >= 20: samples.append((time.perf_counter() - begin) * 1000)
    print(json.dumps(samples))
elif mode == 'bytes':
    connection = connect()
    begin = time.perf_counter()
    ask(connection, '/bytes/%d' % amount)
    finish(connection)
    print(json.dumps([time.perf_counter() - begin]))
else:
    connections = [connect() for _ in range(amount)]
    for connection in connections: ask(connection)
    for connection in connections: finish(connection)
    print(json.dumps([len(connections)]))
`
