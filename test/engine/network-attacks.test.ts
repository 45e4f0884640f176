import { readdirSync, readlinkSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Sandbox } from '../../src/sandbox/index.js'
import { httpServer, type OtherSide } from '../egress/front-servers.js'
import { startScript } from '../sys/run-script.js'
import { type NetworkGround, openGround } from './network-ground.js'

let ground: NetworkGround
let http: OtherSide

beforeAll(async () => {
  // Suggested, not demanded: a user who cannot have them gets what there is.
  ground = await openGround({ policy: { defaults: { limits: { cpus: 2 } } } })
  http = await httpServer()
})
afterAll(async () => {
  await ground[Symbol.asyncDispose]()
  await http[Symbol.asyncDispose]()
})
beforeEach(({ skip }) => {
  if (ground.without !== undefined) skip(ground.without)
})

const open = (): Promise<Sandbox> => Sandbox.create({ platform: ground.platform, network: { allow: [`shop.example.com:${http.port}`] } })
const visit = async (from: Sandbox): Promise<string> => (await from.run(['curl', '-sS', '--max-time', '60', `http://shop.example.com:${http.port}/`])).stdout
const python = (program: string): string[] => ['/usr/bin/python3', '-c', program]
/** Those of connections: a sandbox that is used keeps files of its cgroups open besides. */
const descriptors = (): number => readdirSync('/proc/self/fd').filter((fd) => leadsTo(fd).startsWith('socket:')).length
const mebibyte = 1024 * 1024

function leadsTo(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return 'closed meanwhile'
  }
}

/** Makes as many as it can of 5,000 at once, keeps all of them, and goes on saying a little until it is told to stop. */
const halfOpen = `
import os, resource, socket, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
words = [b'x', b'G', b'GET http://shop.example.com/ HTTP/1.1\\r\\nX: ', b'CONNECT ', b'\\x05', b'\\x05\\x02', b'\\x16\\x03']
held = []
for index in range(min(5000, most - 50)):
    s = socket.socket(); s.setblocking(False)
    try: s.connect(('127.0.0.1', 3128))
    except BlockingIOError: pass
    held.append(s)
open('/tmp/held', 'w').write(str(len(held)))
first = True
end = time.time() + 90
while not os.path.exists('/tmp/stop') and time.time() < end:
    for index, s in enumerate(held):
        try: s.send(words[index % 7] if first else b'a')
        except OSError: pass
    first = False
    time.sleep(0.2)`

test('thousands of half-open and dribbling connections of one sandbox hold up neither another nor, once they are gone, its own', async () => {
  await using other = await open()
  expect(await visit(other)).toBe('seen GET / 0')
  const before = { descriptors: descriptors(), memory: process.memoryUsage().rss }
  const attacker = await open()
  const attack = await attacker.spawn(python(halfOpen))
  await expect.poll(async () => Number((await attacker.run('cat /tmp/held 2>/dev/null')).stdout)).toBeGreaterThan(900)

  for (let each = 0; each < 5; each++) expect(await visit(other)).toBe('seen GET / 0')
  expect((await attacker.processes()).some(({ pid }) => pid === attack.pid)).toBe(true)
  expect(process.memoryUsage().rss - before.memory).toBeLessThan(256 * mebibyte)

  await attacker.run('touch /tmp/stop')
  await attack.wait()
  expect(await visit(attacker)).toBe('seen GET / 0')
  await attacker.close()
  await expect.poll(descriptors).toBeLessThanOrEqual(before.descriptors + 8)
})

/** Of every kind of datagram that a resolver may meet, then the same over TCP. Says how many of each were sent. */
const flood = `
import os, random, socket, struct
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.setblocking(False)
def wire(name): return b''.join(bytes([len(part)]) + part for part in name.split(b'.')) + b'\\0'
def ask(name, kind=1, flags=0x100, count=1, more=b'', extra=0):
    return struct.pack('>HHHHHH', random.getrandbits(16), flags, count, 0, 0, extra) + (name if name[-1:] == b'\\0' or name[:1] > b'\\x7f' else wire(name)) + struct.pack('>HH', kind, 1) + more
edns = b'\\0' + struct.pack('>HHIH', 41, 4096, 0, 0)
kinds = [lambda i: ask(b'data%d.attacker.test' % i), lambda i: ask(b'x.attacker.test', 16), lambda i: ask(b'x.attacker.test', 10), lambda i: ask(b'x.attacker.test', 255),
  lambda i: ask(b'a.attacker.test', 1, 0x100, 1, edns, 1), lambda i: ask(b'a.attacker.test', 1, 0x8180), lambda i: ask(b'a.attacker.test', 1, 0x100, 7),
  lambda i: ask(b'\\xc0\\x0c'), lambda i: ask(b'\\xc0\\xff'), lambda i: ask(b'\\x40' + b'a' * 64 + b'\\0'), lambda i: ask((b'\\x3f' + b'a' * 63) * 5 + b'\\0'),
  lambda i: os.urandom(random.randrange(600)), lambda i: b'', lambda i: os.urandom(9000), lambda i: ask(b'\\x0c\\x1b[31m\\r\\n\\xe2\\x80\\xaeaa\\0'), lambda i: ask(b'b.attacker.test', 1, 0x2800)]
for index in range(100000):
    try: u.sendto(kinds[index % len(kinds)](index), ('127.0.0.1', 53))
    except OSError: pass
    try:
        while True: u.recv(4096)
    except OSError: pass
message = ask(b'tcp.attacker.test')
for _ in range(20):
    with socket.create_connection(('127.0.0.1', 53), 10) as t:
        try:
            t.sendall((struct.pack('>H', len(message)) + message) * 2000)
            while t.recv(65536): pass
        except OSError: pass
print(socket.gethostbyname('shop.example.com'))`

test('100,000 datagrams of DNS, most of them malformed, reach no resolver, and another sandbox is served meanwhile', async ({ skip }) => {
  if (ground.withoutDirect !== undefined) skip(ground.withoutDirect)
  await using other = await open()
  await using attacker = await open()
  const before = process.memoryUsage().rss
  let isOver = false
  const attack = attacker.run(python(flood)).then((result) => {
    isOver = true
    return result
  })
  expect(await visit(other)).toBe('seen GET / 0')
  expect(isOver).toBe(false)

  const { stdout, stderr } = await attack
  expect(stdout + stderr).toMatch(/^198\.1[89]\.\d+\.\d+\n$/)
  const summary = await attacker.network.summary()
  expect(summary.byVerdict.denied).toBeGreaterThan(1000)
  expect(summary.byVerdict.allowed).toBe(0)
  expect(Object.keys(summary.byHost).length).toBeLessThanOrEqual(257)
  expect(JSON.stringify(Object.keys(summary.byHost))).not.toMatch(/\\u001b|\\r|\\n|\u202e/)
  expect(ground.resolved.filter((name) => !name.endsWith('.example.com'))).toEqual([])
  expect(process.memoryUsage().rss - before).toBeLessThan(256 * mebibyte)
})

/** Whether a program can have a port, and what the proxy answers it. */
const atDoors = (port: number): string => `
import socket
def have(address, port, kind=socket.SOCK_STREAM, reuse=True):
    s = socket.socket(socket.AF_INET, kind)
    try:
        if reuse: s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind((address, port))
        if kind == socket.SOCK_STREAM: s.listen(1)
        return 'had'
    except OSError as error: return 'refused'
with socket.create_connection(('127.0.0.1', 3128), 10) as s:
    s.sendall(b'GET http://other.example.com:${port}/ HTTP/1.1\\r\\nHost: other.example.com:${port}\\r\\n\\r\\n')
    print(s.recv(4096).split(b'\\r\\n')[0].decode())
print(have('127.0.0.1', 3128), have('0.0.0.0', 3128), have('127.0.0.1', 53, socket.SOCK_DGRAM), have('0.0.0.0', ${port}), have('127.0.0.1', 0))`

test('nobody inside has a port of a door, in a cell or in a liner, and whoever speaks to one meets the same rules', async ({ skip }) => {
  if (ground.withoutDirect !== undefined) skip(ground.withoutDirect)
  const network = { allow: [`shop.example.com:${http.port}`] }
  const command = python(atDoors(http.port))
  const expected = 'HTTP/1.1 403 Forbidden\nrefused refused refused refused had\n'
  await using sandbox = await open()
  expect((await sandbox.run(command)).stdout).toBe(expected)
  const { platform } = ground
  // In a liner, where there can be one.
  expect((await Sandbox.run(command, { platform, sandbox: { network } })).stdout).toBe(expected)
  // Only for a user who has more ids than one there is a root inside.
  if (process.getuid?.() !== 0) return
  await using rooted = await Sandbox.create({ platform, network, user: 'root' })
  expect((await rooted.run(command)).stdout).toBe(expected)
})

function isAlive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ')
  } catch {
    return false
  }
}

test('an engine that is killed in the midst of traffic leaves no process, and no connection at the other side', async () => {
  let now = 0
  await using slow = await httpServer({
    answer: ({ socket }) => {
      now += 1
      socket.once('close', () => (now -= 1))
    },
  })
  const { child, firstLine, ended } = await startScript(new URL('programs/hold-traffic.ts', import.meta.url), [String(slow.port)])
  const pids = JSON.parse(await firstLine) as number[]
  await expect.poll(() => now).toBe(3)
  child.kill('SIGKILL')
  await ended
  await expect.poll(() => now).toBe(0)
  await expect.poll(() => pids.filter(isAlive)).toEqual([])
})
