/** What callers and programs in real cells try on the server and on each other. */
import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBwrapDriver } from '../../src/drivers/bwrap/driver.js'
import { ask, type OwnServer, ownServer } from './own-server.js'
import { serverFolder, startServer } from './started-server.js'

describe('a program in a cell', () => {
  test('S-11 reaches neither the socket of the server that it runs on, nor its port', async () => {
    using folder = await serverFolder()
    const server = await startServer(folder)
    try {
      const code = `
import socket, sys
for family, address in ((socket.AF_UNIX, sys.argv[1]), (socket.AF_INET, ('127.0.0.1', 7878))):
    try:
        socket.socket(family).connect(address); print('reached')
    except OSError as error: print(type(error).__name__)`
      const answer = await server.ask('/v1/runs', { body: { command: ['/usr/bin/python3', '-c', code, folder.socket] } })
      expect(answer.json().stdout).toMatch(/^(?:FileNotFoundError|PermissionError)\n(?:ConnectionRefusedError|OSError|PermissionError)\n$/)
      expect((await ask(folder.socket, '/v1/health')).status).toBe(200)
    } finally {
      await server.stop()
    }
  })
})

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

  test('S-25 a pattern that would never end is looked for in the cell, keeps nobody waiting, and ends with its sandbox', { timeout: 60_000 }, async () => {
    const id = await create()
    await own.ask(`/v1/sandboxes/${id}/files/content?path=a`, {
      key,
      method: 'PUT',
      body: `${'a'.repeat(5000)}!\n`.repeat(20),
      headers: { 'content-type': 'application/octet-stream' },
    })
    const search = (pattern: string): Promise<number> =>
      own.ask(`/v1/sandboxes/${id}/files/search`, { key, body: { path: '.', pattern, regex: true } }).then(
        ({ status }) => status,
        () => 0,
      )
    const hard = ['(a*)*(a*)*(a*)*b', '(((((a{1,50}){1,50}){1,50}){1,50}){1,50})', '(a|aa|aaa)*\\1b'].map(search)
    for (let n = 0; n < 20; n += 1) {
      const begunAt = performance.now()
      expect((await own.ask('/v1/health')).status).toBe(200)
      expect(performance.now() - begunAt).toBeLessThan(2000)
    }
    await own.ask(`/v1/sandboxes/${id}`, { key, method: 'DELETE' })
    expect((await Promise.all(hard)).every((status) => status < 500 || [501, 502, 503].includes(status))).toBe(true)
    expect((await own.ask('/v1/health')).status).toBe(200)
  })

  test('S-26 no address that a caller names is asked by the server itself: neither the machine’s ports, nor templates by address', async () => {
    let visits = 0
    const internal = createServer((socket) => {
      visits += 1
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret')
    })
    await new Promise<void>((resolve) => internal.listen(0, '127.0.0.1', resolve))
    const { port } = internal.address() as { port: number }
    try {
      const id = await create()
      const paths = [`${port}/`, `${port}/http://127.0.0.1:${port}/`, `80/http://127.0.0.1:${port}/`]
      for (const path of paths) expect((await own.ask(`/v1/sandboxes/${id}/ports/${path}`, { key })).status).toBe(404)
      for (const template of [`http://127.0.0.1:${port}/`, 'file:///etc', `docker://127.0.0.1:${port}/a`, '//169.254.169.254/'])
        expect((await own.ask('/v1/sandboxes', { key, body: { template } })).status).toBeLessThan(500)
      expect(visits).toBe(0)
    } finally {
      internal.close()
    }
  })

  test('M-01 M-02 M-04 M-08 of another tenant’s sandbox nothing is there: files, processes, memory, or what it left', async () => {
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

  test('M-07 forks share files, and neither what is random nor which machine they are', async () => {
    const id = await create()
    const forks = (await own.ask(`/v1/sandboxes/${id}/fork`, { key, body: { count: 2 } })).json()
    const made = (Array.isArray(forks) ? forks : (forks.items as { id: string }[])) as { id: string }[]
    const seen = await Promise.all(made.map((fork) => run(fork.id, ['sh', '-c', 'head -c 16 /dev/urandom | od -An -tx1; cat /proc/sys/kernel/random/uuid'])))
    expect(new Set(seen).size).toBe(2)
    expect(await run(id, ['sh', '-c', 'ls /etc/ssh/*key 2>/dev/null; cat /etc/machine-id 2>/dev/null || true'])).toBe('')
  })
})
