/** What callers and programs in real cells try on the server and on each other. */
import { execFile, execFileSync } from 'node:child_process'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBwrapDriver } from '../../src/drivers/bwrap/driver.js'
import { type OwnServer, ownServer } from './own-server.js'
import { serverFolder, startServer } from './started-server.js'

/** Says for each address whether something takes a connection there. */
const knocking = `
import json, socket, sys
for address in json.loads(sys.argv[1]):
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET6 if ':' in address[0] else socket.AF_INET
    try:
        socket.socket(family).connect(address if isinstance(address, str) else tuple(address)); print('reached')
    except OSError as error: print(type(error).__name__)
`

describe('a program in a cell', () => {
  test('S-11 reaches neither the socket of the server that it runs on, nor its port', async () => {
    using folder = await serverFolder()
    const server = await startServer(folder)
    await using byPort = await ownServer({ drivers: [createBwrapDriver()], allowed: { mounts: false, seccomp: false, drivers: [] } })
    try {
      const outside = Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address))
      const addresses = [folder.socket, ...[...new Set(['127.0.0.1', 'localhost', ...outside])].map((host) => [host, byPort.port])]
      const command = ['/usr/bin/python3', '-c', knocking, JSON.stringify(addresses)]
      // The positive control: both are there, for whoever is outside.
      const here = execFileSync(command[0] as string, command.slice(1), { encoding: 'utf8' }).split('\n')
      expect(here.slice(0, 3)).toEqual(['reached', 'reached', 'reached'])
      const key = await byPort.key('red')
      const answers = [
        await server.ask('/v1/runs', { body: { command } }),
        await byPort.ask('/v1/runs', { key, body: { command } }),
        await byPort.ask('/v1/runs', { key, body: { command, sandbox: { network: { allow: ['example.com'] } } } }),
      ]
      for (const answer of answers) {
        const lines = String(answer.json().stdout).trim().split('\n')
        expect([lines.length, lines[0], lines.includes('reached')]).toEqual([
          addresses.length,
          expect.stringMatching(/FileNotFoundError|PermissionError/),
          false,
        ])
      }
    } finally {
      await server.stop()
    }
  })
})

const fetching = `
import sys, urllib.request
try: print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())
except Exception as error: print('refused', type(error).__name__)
`

/** Fills disk and memory with a word and leaves it there; or looks whether it is found in what was never written by oneself. */
const scanning = `
import glob, mmap, os, sys
how, word = sys.argv[1], sys.argv[2].encode()
size = 24 * 2**20
if how == 'fill':
    for place in ('/tmp/left', '/dev/shm/left', 'left'):
        try:
            with open(place, 'wb') as f: f.write(word * (size // len(word)))
        except OSError: pass
    memory = mmap.mmap(-1, size); memory.write(word * (size // len(word)))
    print('filled'); sys.exit()
word = sys.argv[2].encode()
def found(data): return word in data
with open('made', 'wb+') as f:
    os.posix_fallocate(f.fileno(), 0, size); f.seek(0); print('blocks of a file:', found(f.read()))
with open('short', 'wb+') as f:
    f.write(b'x' * 100); f.truncate(size); f.seek(0); print('the rest of a file:', found(f.read()))
print('memory:', found(mmap.mmap(-1, size).read()))
print('places:', any(found(open(p, 'rb').read()) for p in glob.glob('/tmp/*') + glob.glob('/dev/shm/*') + glob.glob('*') if os.path.isfile(p)))
`

describe('what callers ask for that is done in cells', () => {
  let own: OwnServer
  let key: string
  beforeAll(async () => {
    own = await ownServer({ drivers: [createBwrapDriver()], allowed: { mounts: false, seccomp: false, drivers: [] } })
    key = await own.key('red')
  })
  afterAll(() => own[Symbol.asyncDispose]())
  const create = async (secret = key, spec: object = {}): Promise<string> => String((await own.ask('/v1/sandboxes', { key: secret, body: spec })).json().id)
  const run = async (id: string, command: readonly string[], secret = key): Promise<string> =>
    String((await own.ask(`/v1/sandboxes/${id}/processes`, { key: secret, body: { command } })).json().stdout)

  /** How often others are answered while this is under way, at most ten times; and what comes of it. */
  const meanwhile = async (asked: Promise<{ readonly status: number }>): Promise<{ readonly answered: number; readonly status: Promise<number> }> => {
    let isOver = false
    const status = asked.then(
      (answer) => answer.status,
      () => 0,
    )
    void status.then(() => (isOver = true))
    let answered = 0
    for (; answered < 10; answered += 1) {
      expect((await own.ask('/v1/health')).status).toBe(200)
      if (isOver) break
    }
    return { answered, status }
  }

  test('S-25 a pattern that would never end is looked for in the cell, keeps nobody waiting, and ends with its sandbox', { timeout: 60_000 }, async () => {
    const id = await create()
    await own.ask(`/v1/sandboxes/${id}/files/content?path=a`, {
      key,
      method: 'PUT',
      body: `${'a'.repeat(5000)}!\n`.repeat(20),
      headers: { 'content-type': 'application/octet-stream' },
    })
    const search = (pattern: string) => own.ask(`/v1/sandboxes/${id}/files/search`, { key, body: { path: '.', pattern, regex: true } })
    // The positive controls: the search finds, and the pattern is one by which a matcher of the server's own would be lost.
    expect((await search('a!$')).json().matches).toHaveLength(20)
    const hard = await meanwhile(search('(a|aa|aaa)*\\1b'))
    expect(hard.answered).toBe(10)
    await own.ask(`/v1/sandboxes/${id}`, { key, method: 'DELETE' })
    expect([404, 409, 410]).toContain(await hard.status)
  })

  test('S-25 a glob that takes long is matched bit by bit, so that others have their turn', { timeout: 60_000 }, async () => {
    const id = await create()
    const deep = Array.from({ length: 15 }, () => 'a'.repeat(200)).join('/')
    await run(id, ['sh', '-c', `d=${deep}; mkdir -p $d; cd $d; for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do : > ${'a'.repeat(200)}$n; done`])
    const list = (glob: string) => own.ask(`/v1/sandboxes/${id}/files?path=.&glob=${encodeURIComponent(glob)}`, { key })
    expect(((await list('**/*a7')).json().items as unknown[]).length).toBe(1)
    const hard = await meanwhile(list(`**/{*,?*,??*,???*,????*,?????*,??????*,???????*}${'a'.repeat(90)}/*${'a'.repeat(95)}b`))
    expect(hard.answered).toBe(10)
    expect(await hard.status).toBe(200)
  })

  test('S-26 no address that a caller names is asked by the server itself: neither the machine’s ports, nor templates by address', async () => {
    let visits = 0
    const internal = createServer((socket) => {
      visits += 1
      socket.on('error', () => undefined).end('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 6\r\n\r\nsecret')
    })
    await new Promise<void>((resolve) => internal.listen(0, '127.0.0.1', resolve))
    const { port } = internal.address() as { port: number }
    try {
      const id = await create()
      const paths = [`${port}/`, `${port}/http://127.0.0.1:${port}/`, `80/http://127.0.0.1:${port}/`]
      for (const path of paths) expect((await own.ask(`/v1/sandboxes/${id}/ports/${path}`, { key })).status).toBe(404)
      const places = ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', '2130706433', '0x7f.1'].map((host) => `${host}:${port}`)
      const addresses = [
        ...places.flatMap((place) => [`http://${place}/`, `docker://${place}/a`, `git+http://${place}/a.git`, `${place}/a:latest`]),
        'file:///etc',
      ]
      for (const address of addresses) {
        const spec = { template: address }
        const asked = [
          ['/v1/sandboxes', spec],
          ['/v1/takes', { spec }],
          ['/v1/pools', { spec }],
          ['/v1/runs', { command: ['true'], sandbox: spec }],
          ['/v1/sandboxes', { snapshot: address }],
        ] as const
        for (const [path, body] of asked) expect([address, path, (await own.ask(path, { key, body })).status >= 400]).toEqual([address, path, true])
        expect([404, 400]).toContain((await own.ask(`/v1/templates/${encodeURIComponent(address)}`, { key })).status)
      }
      // Nor does a program reach it by the way out, whatever its spec names: it is for the operator to say.
      for (const host of ['127.0.0.1', 'localhost', '169.254.169.254'])
        expect(await fetched(`http://${host}:${port}/`, { network: { allow: [`${host}:${port}`, '*'] } })).not.toContain('secret')
      expect(visits).toBe(0)
      // The positive control: it is there, and counts who comes.
      const { stdout } = await promisify(execFile)('/usr/bin/python3', ['-c', fetching, `http://127.0.0.1:${port}/`], { env: {} })
      expect([stdout, visits]).toEqual(['secret\n', 1])
    } finally {
      internal.close()
    }
  })

  const fetched = async (url: string, sandbox: object): Promise<string> =>
    (await own.ask('/v1/runs', { key, body: { command: ['/usr/bin/python3', '-c', fetching, url], sandbox } })).text

  test('M-01 M-02 M-04 of another tenant’s sandbox nothing is there: files, processes, memory, or what it left', async () => {
    const blue = await own.key('blue')
    const [ours, theirs] = [await create(), await create(blue)]
    const canary = `canary-${Math.random().toString(36).slice(2)}`
    await run(
      theirs,
      ['sh', '-c', `echo ${canary} > note; echo ${canary} > /tmp/note; echo ${canary} > /dev/shm/note; (setsid sleep 99.${canary} 2>&- &) ; true`],
      blue,
    )
    // Written so that whoever looks does not find itself.
    const look = `grep -rls '[c]${canary.slice(1)}' /workspace /tmp /dev/shm /home /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null; ls /proc | grep -c '^[0-9]'`
    const before = await run(ours, ['sh', '-c', look])
    expect(before.split('\n').filter((line) => line.startsWith('/'))).toEqual([])
    expect(Number(before.trim().split('\n').at(-1))).toBeLessThan(10)
    await own.ask(`/v1/sandboxes/${theirs}`, { key: blue, method: 'DELETE' })
    const next = await create()
    expect((await run(next, ['sh', '-c', look])).split('\n').filter((line) => line.startsWith('/'))).toEqual([])
    // The positive control: whoever wrote it finds it by the same look.
    await run(next, ['sh', '-c', `echo ${canary} > /tmp/note; (setsid sleep 99.${canary} >/dev/null 2>&1 &) ; true`])
    expect(await run(next, ['sh', '-c', `sleep 0.2; ${look}`])).toMatch(/\/tmp\/note/)
  })

  test('M-08 neither the disk nor the memory that a sandbox is given holds what another has left', { timeout: 60_000 }, async () => {
    const blue = await own.key('blue')
    const canary = `canary-${Math.random().toString(36).slice(2)}-`
    const fill = ['/usr/bin/python3', '-c', scanning, 'fill', canary]
    const scan = async (id: string): Promise<string> => run(id, ['/usr/bin/python3', '-c', scanning, 'scan', canary.slice(1)])
    const theirs = await create(blue)
    expect(await run(theirs, fill, blue)).toBe('filled\n')
    await own.ask(`/v1/sandboxes/${theirs}`, { key: blue, method: 'DELETE' })
    const next = await create()
    expect(await scan(next)).toBe('blocks of a file: False\nthe rest of a file: False\nmemory: False\nplaces: False\n')
    // The positive control: what is there is found by the same look.
    expect(await run(next, fill)).toBe('filled\n')
    expect(await scan(next)).toMatch(/places: True/)
  })

  test('M-07 forks share files, and neither what is random nor which machine they are', async () => {
    const id = await create()
    const forks = (await own.ask(`/v1/sandboxes/${id}/fork`, { key, body: { count: 2 } })).json()
    const made = (Array.isArray(forks) ? forks : (forks.items as { id: string }[])) as { id: string }[]
    const seen = await Promise.all(made.map((fork) => run(fork.id, ['sh', '-c', 'head -c 16 /dev/urandom | od -An -tx1; cat /proc/sys/kernel/random/uuid'])))
    expect(new Set(seen).size).toBe(2)
    expect(await run(id, ['sh', '-c', 'ls /etc/ssh/*key 2>/dev/null; cat /etc/machine-id 2>/dev/null || true'])).toBe('')
  })
})
