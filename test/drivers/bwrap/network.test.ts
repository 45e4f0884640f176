import { readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import type { GuestConnection } from '../../../src/contract/egress.js'
import { createBwrapDriver } from '../../../src/drivers/bwrap/driver.js'
import { descendantsOf } from '../../../src/sys/posture/process-tree.js'
import { testUnless } from '../../unless.js'
import { type Guest, openGuest } from './open-guest.js'
import { wordyLauncher } from './planted-drivers.js'

const probe = await createBwrapDriver().probe()
const lacking = probe.available ? false : (probe.obstacles[0]?.why ?? 'no bwrap')
const { 'direct-network': found, 'root-overlay': overlay } = probe.features
const indirect = lacking || (found.available ? false : found.why)

async function openWith(direct: boolean): Promise<Guest> {
  return await openGuest({ spec: { network: { direct } } })
}

async function readAll(connection: GuestConnection): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const bytes of connection.output) parts.push(bytes)
  return Buffer.concat(parts).toString()
}

/** Answers each connection with where it was meant to go and what it said. */
function echo(guest: Guest): GuestConnection[] {
  const taken: GuestConnection[] = []
  guest.warden.onConnection((connection) => {
    taken.push(connection)
    void (async () => {
      const said = await readAll(connection)
      await connection.write(Buffer.from(`${connection.door} ${connection.address} ${connection.port} ${said}`))
      await connection.end()
      await connection.closed
    })().catch(() => undefined)
  })
  return taken
}

const python = (script: string): string => `python3 - <<'END'
import socket
def ask(address, port, said=b'hello'):
    s = socket.create_connection((address, port), 5)
    s.sendall(said)
    s.shutdown(socket.SHUT_WR)
    got = b''
    while True:
        more = s.recv(65536)
        if not more: return got.decode()
        got += more
${script}
END`

/** RTM_NEWROUTE for 203.0.113.0/24 over `lo`, and what the kernel says to it. */
const routeAttack = python(`
import struct
body = struct.pack('BBBBBBBBI', socket.AF_INET, 24, 0, 0, 254, 4, 253, 1, 0) + struct.pack('HHI', 8, 4, 1) + struct.pack('HH4s', 8, 1, bytes((203, 0, 113, 0)))
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
s.send(struct.pack('IHHII', 16 + len(body), 24, 0x605, 1, 0) + body)
print(struct.unpack_from('i', s.recv(4096), 16)[0])`)

describe('a cell without one', () => {
  testUnless(lacking)('has no way to anywhere, no door, and nothing of it in its environment', async () => {
    await using guest = await openGuest()
    expect(guest.cell.env).toEqual({})
    const [posture] = await guest.cell.posture({ kind: 'cell' })
    expect(posture?.observations.find(({ control }) => control === 'routes')?.value).toEqual([])
    expect(await guest.sh("cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 | grep -vc 'local_address'; env | grep -ci proxy")).toBe('0\n0\n')
  })

  testUnless(lacking)('can never be given one', async () => {
    await using guest = await openGuest()
    guest.warden.listen([443])
    expect(await guest.warden.ended).toMatchObject({ code: 'broken', message: 'the warden gave up: LISTEN in a cell without direct doors' })
  })
})

describe('a cell with a way out', () => {
  testUnless(lacking)('carries what programs say to the proxy, on both loopbacks, and nothing else', async () => {
    await using guest = await openWith(false)
    echo(guest)
    expect(await guest.sh(python("print(ask('127.0.0.1', 3128)); print(ask('::1', 3128))"))).toBe(
      'proxy 127.0.0.1 3128 hello\nproxy 0:0:0:0:0:0:0:1 3128 hello\n',
    )
    expect(await guest.sh(python("try: ask('192.0.2.7', 443)\nexcept OSError as error: print(error.errno)"))).toBe('101\n')
  })

  testUnless(indirect)('takes in direct connections at the ports it was told, at any address, and tells which', async () => {
    await using guest = await openWith(true)
    echo(guest)
    guest.warden.listen([443, 8080])
    expect(await guest.sh(python("print(ask('192.0.2.7', 443)); print(ask('2001:db8::7', 8080)); print(ask('127.0.0.1', 3128))"))).toBe(
      'direct 192.0.2.7 443 hello\ndirect 2001:db8:0:0:0:0:0:7 8080 hello\nproxy 127.0.0.1 3128 hello\n',
    )
    guest.warden.listen([8080])
    expect(await guest.sh(python("try: ask('192.0.2.7', 443)\nexcept OSError as error: print(error.errno)\nprint(ask('192.0.2.7', 8080))"))).toBe(
      '111\ndirect 192.0.2.7 8080 hello\n',
    )
  })

  testUnless(indirect)('lets nobody outside pass for a program: its doors are no ports of the cell', async () => {
    await using guest = await openWith(true)
    const taken = echo(guest)
    guest.warden.listen([8080])
    for (const port of [3128, 8080, 53]) await expect(guest.warden.connect(port)).rejects.toMatchObject({ code: 'not-found' })
    expect(taken).toEqual([])
  })

  testUnless(indirect)('answers DNS from wherever it was asked', async () => {
    await using guest = await openWith(true)
    guest.warden.onQuery((query) => Promise.resolve(Buffer.concat([query, Buffer.from('!')])))
    const script = `
for family, address in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET, '9.9.9.9'), (socket.AF_INET6, '2001:db8::53')):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(5)
    s.sendto(b'who', (address, 53))
    print(s.recvfrom(100)[0].decode(), s.getsockname()[1] > 0)
    s.connect((address, 53))
    s.send(b'again')
    print(s.recv(100).decode())`
    expect(await guest.sh(python(script))).toBe('who! True\nagain!\n'.repeat(3))
  })

  testUnless(indirect)('is where programs ask for names, without being told', async () => {
    await using guest = await openWith(true)
    const asked = new Set<string>()
    guest.warden.onQuery((query) => {
      asked.add(Buffer.from(query.subarray(12, -4)).toString('latin1'))
      // NXDOMAIN, as a recursive server says it.
      const answer = Buffer.from(query)
      answer.writeUInt16BE(0x8183, 2)
      return Promise.resolve(answer)
    })
    const script = "try: socket.getaddrinfo('example.org', 443)\nexcept socket.gaierror as error: print(error.errno == socket.EAI_NONAME)"
    expect(await guest.sh(python(script))).toBe('True\n')
    expect([...asked]).toContain('\u0007example\u0003org\0')
  })

  testUnless(indirect)('is found to be as it was asked for: all ways lead to itself, and its warden makes no more', async () => {
    await using guest = await openWith(true)
    const [posture] = await guest.cell.posture({ kind: 'cell' })
    const seen = Object.fromEntries(posture?.observations.map(({ control, value }) => [control, value]) ?? [])
    const expected = Object.fromEntries(guest.cell.expects.map(({ control, value }) => [control, value]))
    expect([seen.routes, seen.interfaces, seen.warden]).toEqual([expected.routes, ['lo'], expected.warden])
    expect(expected.routes).toContain('0.0.0.0/0 lo')
    expect(await guest.sh(routeAttack)).toBe('-1\n')
  })

  const roots = [
    ['readonly', lacking],
    ['overlay', lacking || (overlay.available ? false : overlay.why)],
  ] as const
  for (const [rootMode, why] of roots)
    testUnless(why)(`shows its programs what to trust, as a file of its own, with root: '${rootMode}'`, async () => {
      const folder = await mkdtemp(join(tmpdir(), 'certificates-'))
      try {
        const certificates = join(folder, 'all.pem')
        await writeFile(certificates, 'PEM\n'.repeat(50_000))
        await using guest = await openGuest({ spec: { rootMode, network: { direct: false, certificates } } })
        const script =
          'wc -c < "$SSL_CERT_FILE"; stat -c %a "$NODE_EXTRA_CA_CERTS"; test "$SSL_CERT_FILE" = "$npm_config_cafile" && echo same; echo x >> "$PIP_CERT" || echo kept'
        expect(await guest.sh(script)).toMatch(/^200000\n444\nsame\n.*kept\n$/s)
        const { ino } = await stat(certificates)
        expect(await guest.sh('stat -c %i "$CURL_CA_BUNDLE"')).not.toBe(`${ino}\n`)
        const [posture] = await guest.cell.posture({ kind: 'cell' })
        const mounts = guest.cell.expects.find(({ control }) => control === 'mounts')?.value
        expect(posture?.observations.find(({ control }) => control === 'mounts')?.value).toEqual(mounts)
      } finally {
        await rm(folder, { recursive: true })
      }
    })

  testUnless(indirect)('is offered as far as it was found to work: without a way to make routes, by proxy alone', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'network-'))
    try {
      await chmod(folder, 0o755)
      const launcher = wordyLauncher(folder, { CAP_NET_ADMIN: ['CAP_SETPCAP'] })
      const { features, available } = await createBwrapDriver({ programs: { launcher } }).probe()
      expect([available, features.network, features.liners, features['direct-network']]).toEqual([
        true,
        { available: true },
        { available: true },
        { available: false, why: 'a cell with one did not open: the cell did not open: warden: open the routes to itself: Operation not permitted' },
      ])
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  testUnless(lacking)('does not open without the certificates that it was to show', async () => {
    const opening = openGuest({ spec: { network: { direct: false, certificates: '/nowhere.pem' } } })
    await expect(opening).rejects.toMatchObject({ code: 'unavailable', hint: 'ls -l /nowhere.pem' })
  })

  testUnless(indirect)('holds of 256 connections that nobody reads no more than the room that its warden has', async () => {
    await using guest = await openWith(true)
    const connections: GuestConnection[] = []
    let [handed, isEnough] = [0, false]
    guest.warden.onConnection((connection) => {
      connections.push(connection)
      if (isEnough) void connection.destroy()
      void (async () => {
        for (; !isEnough; handed += 1) await connection.write(Buffer.alloc(65_536, 7))
      })().catch(() => undefined)
    })
    // The last is taken in only when another is gone.
    const run = guest.sh(python("all = [socket.create_connection(('127.0.0.1', 3128)) for _ in range(257)]\nall[256].recv(1)"))
    const seen: number[] = []
    for (let [before, still] = [-1, 0]; still < 5; before = handed) {
      await pause(200)
      still = connections.length === 256 && before === handed ? still + 1 : 0
      seen.push(...wardensBelow(process.pid))
    }
    isEnough = true
    await Promise.all(connections.map((connection) => connection.destroy()))
    await run
    // More than an idle one has, and less than a third of its room.
    expect(Math.max(...seen)).toBeGreaterThan(1024)
    expect(Math.max(...seen)).toBeLessThan(6144)
  })
})

/** What each holds in memory of its own, in KiB: its program is in the cache of the host, whose it is. */
function wardensBelow(pid: number): number[] {
  return descendantsOf(pid).flatMap((each) => {
    const status = statusOf(each)
    return /^Name:\s*warden$/m.test(status) ? [Number(/^RssAnon:\s*(\d+)/m.exec(status)?.[1])] : []
  })
}

/** Empty when it is gone. */
function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    return ''
  }
}
