/** An engine under all kinds of load at once, until it is killed: prints a line for each act that was done, and what failed on stderr. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createPlatform, Sandbox, SandboxPool } from '../../../src/index.js'
import { randomOf } from '../../server/random.js'

const [home = '', driver = '', seed = '1', marker = ''] = process.argv.slice(2)
const random = randomOf(Number(seed))
const workers = 4
const folder = join(home, 'snapshots')
const platform = createPlatform({ snapshotDir: folder, policy: { ceiling: { network: { private: ['127.0.0.0/8'] } } } })
const server = createServer((_, response) => response.end('served')).listen(0, '127.0.0.1')
await once(server, 'listening')
const port = (): number => (server.address() as AddressInfo).port
const spec = { platform, driver } as const

/** Some of what runs is still there when the engine is not. */
const command = (): string[] => ['sh', '-c', random() < 0.3 ? `setsid sleep 1000.${marker} & sleep 0.1` : 'echo done']

const acts: Readonly<Record<string, () => Promise<unknown>>> = {
  shot: async () => Sandbox.run(command(), { platform, sandbox: { driver }, timeout: '2s' }),
  run: async () => {
    await using sandbox = await Sandbox.create(spec)
    await sandbox.run(command())
    void sandbox.spawn(['sleep', `1000.${marker}`]).catch(() => undefined)
    await sandbox.run(command())
  },
  code: async () => {
    await using sandbox = await Sandbox.create(spec)
    await sandbox.code('x = 6 * 7\nx')
  },
  files: async () => {
    await using sandbox = await Sandbox.create(spec)
    await sandbox.files.write('a/b', new Uint8Array(300_000))
    await sandbox.files.read('a/b')
    await sandbox.files.download('a', join(home, `out-${Math.floor(random() * 1e9)}`))
  },
  snapshot: async () => {
    await using sandbox = await Sandbox.create(spec)
    await sandbox.files.write('some', new Uint8Array(200_000).fill(random() * 255))
    const taken = await sandbox.snapshot({ name: `kept-${Math.floor(random() * 5)}` })
    await using _again = await Sandbox.create({ ...spec, from: taken.id })
  },
  fork: async () => {
    await using sandbox = await Sandbox.create(spec)
    await sandbox.files.write('some', 'thing')
    const forks = await sandbox.fork(2)
    await Promise.all(forks.map((fork) => fork.close()))
  },
  pause: async () => {
    await using sandbox = await Sandbox.create(spec)
    await sandbox.files.write('some', 'thing')
    await sandbox.pause({ memory: random() < 0.5 })
    await sandbox.resume()
  },
  egress: async () => {
    await using sandbox = await Sandbox.create({ ...spec, network: { allow: [{ host: '127.0.0.1', ports: [port()] }] } })
    await sandbox.run(['python3', '-c', `import urllib.request; urllib.request.urlopen('http://127.0.0.1:${port()}/').read()`])
  },
  pool: async () => {
    await using pool = await SandboxPool.create({ ...spec, size: 1, max: 2 })
    await pool.run(['true'])
    await using _taken = await pool.acquire()
  },
}

/** What this machine or driver cannot do is no failure of the engine's. */
function isRefusal(error: unknown): boolean {
  return ['unsupported', 'not-found', 'busy', 'conflict'].includes((error as { readonly code?: string }).code ?? '')
}

async function work(): Promise<never> {
  const names = Object.keys(acts)
  for (;;) {
    const name = names[Math.floor(random() * names.length)] as string
    try {
      await acts[name]?.()
      process.stdout.write(`${name}\n`)
    } catch (error) {
      process.stderr.write(isRefusal(error) ? '' : `${name}: ${String(error)}\n`)
      if (isRefusal(error)) process.stdout.write(`refused ${name}: ${String(error)}\n`)
    }
  }
}

await Promise.all(Array.from({ length: workers }, work))
