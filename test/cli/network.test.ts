import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { probeDrivers } from '../../src/compose.js'
import { httpServer, type OtherSide } from '../egress/front-servers.js'
import { cli, fake } from './cli.js'

let folder: string
let server: OtherSide
let why: string | undefined
/** Not 127.0.0.1, which programs do not ask a proxy for. */
const address = '127.0.0.2'

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'glovebox-net-'))
  server = await httpServer({ address })
  writeFileSync(join(folder, 'operator.json'), JSON.stringify({ ceiling: { network: { private: ['127.0.0.0/8'] } } }))
  const network = (await probeDrivers()).find(({ driver }) => driver === 'bwrap')?.features.network
  why = network?.available ? undefined : (network?.why ?? 'there is no driver bwrap')
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const here = (): string => `${address}:${server.port}`
const run = (flags: readonly string[], command: readonly string[]) =>
  cli(['run', ...flags, '--', ...command], { env: { GLOVEBOX_POLICY: join(folder, 'operator.json') } })

/** Says hello through the proxy, and is over as soon as it was answered. */
const tunnel = `
import os, socket, sys
host, port = os.environ['http_proxy'].rstrip('/').rsplit('/', 1)[-1].rsplit(':', 1)
s = socket.create_connection((host, int(port)))
s.sendall(f'CONNECT {sys.argv[1]} HTTP/1.1\\r\\nHost: {sys.argv[1]}\\r\\n\\r\\n'.encode())
s.recv(4096)
s.sendall(b'hello')
print(s.recv(2).decode(), end='')`

/** Answers, and ends so long after the other direction has. */
async function slowToEnd(ms: number) {
  const side = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.write('ok'))
    socket.on('end', () => setTimeout(() => socket.end(), ms))
  })
  await once(side.listen(0, address), 'listening')
  return { port: (side.address() as AddressInfo).port, [Symbol.asyncDispose]: async () => void (await once(side.close(), 'close')) }
}

describe('run with a network', () => {
  test('reaches what is allowed, and writes each request down', async ({ skip }) => {
    if (why !== undefined) skip(why)
    const log = join(folder, 'log.ndjson')
    const result = await run(['-q', '--allow', here(), '--net-log', log], ['curl', '-sS', `http://${here()}/a?b=c`])
    expect(result).toMatchObject({ code: 0, stdout: 'seen GET /a?b=c 0', stderr: '' })
    const [record, ...rest] = readFileSync(log, 'utf8').trimEnd().split('\n')
    expect(rest).toEqual([])
    expect(JSON.parse(record ?? '')).toMatchObject({ host: address, port: server.port, method: 'GET', path: '/a', status: 200, verdict: 'allowed' })
  })

  test('says of each denied attempt what would allow it, once', async ({ skip }) => {
    if (why !== undefined) skip(why)
    const before = server.seen.length
    const asked = ['http://example.org/', 'http://example.org/', `http://${here()}/`, 'http://10.0.0.1/']
    const result = await run(['--allow', 'example.net'], ['sh', '-c', `for url in ${asked.join(' ')}; do curl -sS -o /dev/null "$url"; done`])
    expect(result.code).toBe(0)
    expect(result.stderr.split('\n').filter((line) => line.startsWith('glovebox: denied'))).toEqual([
      'glovebox: denied: example.org:80 (2 times): no rule allows it; --allow example.org would allow it',
      `glovebox: denied: ${here()}: no rule allows it; --allow ${here()} would allow it`,
      'glovebox: denied: 10.0.0.1:80: 10.0.0.1 is private',
    ])
    expect(server.seen.length).toBe(before)
  })

  test('--learn-network says first what it opens, and then the least that was needed', async ({ skip }) => {
    if (why !== undefined) skip(why)
    // Quiet, so that limits which this user cannot have are not told of; what is opened is told all the same.
    const result = await run(['-q', '--learn-network'], ['curl', '-sS', `http://${here()}/x`])
    expect(result).toMatchObject({ code: 0, stdout: 'seen GET /x 0' })
    expect(result.stderr.trimEnd().split('\n')).toEqual([
      'glovebox: --learn-network: everything public can be reached, and is written down',
      `glovebox: learnt: {"defaults":{"network":{"allow":["${here()}"]}}}`,
      `glovebox: learnt: glovebox run --allow ${here()} -- curl -sS http://${here()}/x`,
    ])
    writeFileSync(join(folder, 'learnt.json'), (/learnt: (\{.*\})/.exec(result.stderr) ?? [])[1] ?? '')
    expect(await run(['-q', '--policy', join(folder, 'learnt.json')], ['curl', '-sS', `http://${here()}/y`])).toMatchObject({ stdout: 'seen GET /y 0' })
  })

  test('--json tells of the network what there is to tell', async ({ skip }) => {
    if (why !== undefined) skip(why)
    const result = await run(['--json', '--allow', here()], ['curl', '-sS', `http://${here()}/j`])
    expect(JSON.parse(result.stdout)).toMatchObject({
      stdout: 'seen GET /j 0',
      network: { byVerdict: { allowed: 1, denied: 0, failed: 0 }, byStatus: { 200: 1 } },
    })
  })

  test('--json tells of a tunnel, too, that ends a moment after its program', async ({ skip }) => {
    if (why !== undefined) skip(why)
    await using slow = await slowToEnd(50)
    const there = `${address}:${slow.port}`
    const result = await run(['--json', '--allow', there], ['/usr/bin/python3', '-c', tunnel, there])
    expect(JSON.parse(result.stdout)).toMatchObject({
      stdout: 'ok',
      network: { connections: 1, bytesUp: 5, bytesDown: 2, byVerdict: { allowed: 1, denied: 0, failed: 0 }, latest: [{ port: slow.port, verdict: 'allowed' }] },
    })
  })

  test('the code of a session reaches it too', async ({ skip }) => {
    if (why !== undefined) skip(why)
    const code = `import urllib.request; print(urllib.request.urlopen('http://${here()}/code').read().decode())`
    const result = await cli(['code', '-q', '--allow', here(), '-c', code], { env: { GLOVEBOX_POLICY: join(folder, 'operator.json') } })
    expect(result).toMatchObject({ code: 0, stdout: 'seen GET /code 0\n' })
  })
})

describe('run refuses', () => {
  test.each([
    [['--block', 'x.org'], '--block: takes from what --allow gives, and that is nothing'],
    [['--net-log', 'x'], '--net-log: there is no network to log; --allow HOST gives one'],
    [['--net-log', '', '--allow', 'a.org'], '--net-log: must not be empty'],
    [['--net-log', '-', '--allow', 'a.org'], "--net-log: stdout is the program's"],
    [['--net-log', '/nowhere/log', '--allow', 'a.org'], '--net-log: /nowhere/log cannot be written (ENOENT)'],
    [['--allow', 'http://x'], "--allow: 'http://x' is a URL: write its host and port, as 'api.example.com:443'"],
    [['--allow', 'a.org', '--allow', 'a.org:0'], "--allow number 2: 'a.org:0' has no possible port: 1 to 65535"],
    [['--allow', 'a.org', '--block', '10.0.0.0/8'], "--block: '10.0.0.0/8' is a range of addresses: write { cidr: '…' }"],
    [[...fake, '--allow', 'a.org'], 'driver fake: --allow is not available: the fake driver leaves programs on the network of the host'],
  ])('%j', async (flags, line) => {
    const result = await cli(['run', ...flags, '--', 'true'])
    expect(result).toMatchObject({ code: 125, stdout: '' })
    expect(result.stderr.split('\n')[0]).toBe(`glovebox: ${line}`)
  })
})
