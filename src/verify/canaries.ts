import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Canaries, Listener } from '../conformance/index.js'

export interface Planted {
  readonly canaries: Canaries
  readonly remove: () => Promise<void>
}

/** What a cell must not show, planted on the host. */
export async function plantCanaries(): Promise<Planted> {
  const file = plantFile()
  const tcp4 = await listen({ host: '127.0.0.1', port: 0 })
  const tcp6 = await listen({ host: '::1', port: 0 }).catch(() => undefined)
  // As long as an address can be: some runtimes pad shorter names with NULs, which makes them other names.
  const name = `gbx-canary-${randomBytes(48).toString('hex')}`
  const abstract = await listen({ path: `\0${name}` }).catch(() => undefined)
  const variable = { name: `GBX_CANARY_${randomBytes(4).toString('hex')}`, value: randomBytes(16).toString('hex') }
  process.env[variable.name] = variable.value
  const sleeper = plantProcess()
  const segment = plantSegment()
  const descriptor = openSync(file.path, 'r')
  return {
    canaries: {
      file,
      process: sleeper.canary,
      tcp4: withPort(tcp4),
      tcp6: tcp6 && withPort(tcp6),
      abstractSocket: abstract && { name, connections: abstract.connections },
      variable,
      descriptor,
      sharedMemory: segment && { key: segment.key },
    },
    remove: () => {
      closeSync(descriptor)
      Reflect.deleteProperty(process.env, variable.name)
      sleeper.child.kill('SIGKILL')
      for (const listening of [tcp4, tcp6, abstract]) listening?.server.close()
      rmSync(file.folder, { recursive: true })
      if (segment) spawnSync('ipcrm', ['-m', String(segment.id)], { stdio: 'ignore' })
      return Promise.resolve()
    },
  }
}

function plantFile(): Canaries['file'] & { readonly folder: string } {
  const folder = mkdtempSync(join(tmpdir(), 'gbx-canary-'))
  const path = join(folder, randomBytes(8).toString('hex'))
  const content = randomBytes(24).toString('hex')
  writeFileSync(path, content, { mode: 0o600 })
  const facts = () => [readFileSync(path, 'utf8'), statSync(path).mode, statSync(path).mtimeMs, statSync(path).uid, readdirSync(folder).length].join()
  const planted = facts()
  return { folder, path, content, isUntouched: () => Promise.resolve(facts() === planted) }
}

function plantProcess(): { readonly child: ChildProcess; readonly canary: Canaries['process'] } {
  const marker = `3600.${randomInt(2 ** 40)}7`
  const child = spawn('sleep', [marker], { stdio: 'ignore' })
  child.unref()
  return { child, canary: { pid: child.pid ?? 0, marker } }
}

interface Segment {
  readonly id: number
  readonly key: number
}

/** Readable for everyone, so that only its namespace keeps it from a cell. Undefined where the machine cannot make one. */
function plantSegment(): Segment | undefined {
  const made = spawnSync('ipcmk', ['-M', '4096', '-p', '0666'], { encoding: 'utf8' })
  const id = Number(/(\d+)\s*$/.exec(made.status === 0 ? made.stdout : '')?.[1] ?? Number.NaN)
  if (Number.isNaN(id)) return undefined
  const line = readFileSync('/proc/sysvipc/shm', 'latin1')
    .split('\n')
    .map((each) => each.trim().split(/\s+/))
    .find((fields) => Number(fields[1]) === id)
  return line === undefined ? undefined : { id, key: Number(line[0]) }
}

interface Listening extends Listener {
  readonly server: Server
}

function listen(address: { readonly host: string; readonly port: number } | { readonly path: string }): Promise<Listening> {
  let count = 0
  const server = createServer((socket) => {
    count += 1
    socket.destroy()
  })
  server.unref()
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(address, () => resolve({ server, connections: () => count }))
  })
}

function withPort({ server, connections }: Listening): Listener & { readonly port: number } {
  const address = server.address()
  return { connections, port: typeof address === 'object' && address ? address.port : 0 }
}
