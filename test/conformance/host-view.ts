import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { mountsButThoseOfTests } from '../mounts.js'
import type { Canaries, HostProcess, HostSnapshot, HostView, Listener } from '../../src/conformance/index.js'

/*
 * The machine as it is seen from the process of the engine, which is the process that calls this. What other engines on the same
 * machine do is kept out: records and temporary files count when they bear this process's name or lie in folders of its own.
 */

export interface HostViewOptions {
  /** Folders of which this process is the only user: all that is in them counts. */
  readonly ownFolders: readonly string[]
  /** Folders shared with other engines: what bears this process's id in its path counts. */
  readonly sharedFolders: readonly string[]
}

export interface PlantedHostView extends HostView, AsyncDisposable {}

const namespaceKinds = ['pid', 'net', 'mnt', 'ipc', 'uts', 'user', 'cgroup']

export async function createHostView(options: HostViewOptions): Promise<PlantedHostView> {
  const planted = await plantCanaries()
  return {
    canaries: planted.canaries,
    namespaces: Object.fromEntries(namespaceKinds.map((kind) => [kind, readlinkSync(`/proc/self/ns/${kind}`)])),
    snapshot: () => Promise.resolve(takeSnapshot(options, planted.canaries.process.pid)),
    readFile: async (path) => void (await readFile(path)),
    availableMemoryBytes: async () => Number(/^MemAvailable:\s*(\d+) kB/m.exec(await readFile('/proc/meminfo', 'utf8'))?.[1]) * 1024,
    [Symbol.asyncDispose]: planted.remove,
  }
}

function takeSnapshot(options: HostViewOptions, canaryPid: number): HostSnapshot {
  return {
    processes: listProcesses(canaryPid),
    mounts: mountsButThoseOfTests(),
    cgroups: listCgroups(),
    files: [
      ...options.ownFolders.flatMap((folder) => listTree(folder)),
      ...options.sharedFolders.flatMap((folder) => listTree(folder).filter((path) => bearsName(path))),
    ].sort(),
    descriptors: listDescriptors(),
  }
}

function bearsName(path: string): boolean {
  return new RegExp(`(?<![0-9])${process.pid}(?![0-9])`).test(path)
}

interface ProcessEntry extends Omit<HostProcess, 'ofEngine'> {
  readonly parent: number
  readonly state: string
}

function listProcesses(canaryPid: number): HostProcess[] {
  const entries = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readProcess(Number(name)) ?? [])
    // A zombie holds nothing, and its parent is about to read it.
    .filter(({ state, pid }) => state !== 'Z' && state !== 'X' && pid !== canaryPid)
  const parents = new Map(entries.map(({ pid, parent }) => [pid, parent]))
  return entries.map(({ pid, command }) => ({ pid, command, ofEngine: descends(pid, parents) }))
}

function readProcess(pid: number): ProcessEntry | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const name = stat.slice(stat.indexOf('('), stat.lastIndexOf(')') + 1)
    const [state = '', parent = '0'] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').trim() || name
    return { pid, command, parent: Number(parent), state }
  } catch {
    return undefined
  }
}

function descends(pid: number, parents: ReadonlyMap<number, number>): boolean {
  let at = parents.get(pid)
  while (at !== undefined && at > 1) {
    if (at === process.pid) return true
    at = parents.get(at)
  }
  return false
}

/** Those that bear our name, sought where an engine makes them: at this process's own place in each hierarchy and above it. */
function listCgroups(): string[] {
  const mountPoints = lines('/proc/self/mountinfo').flatMap((line) => (/ - cgroup2? /.test(line) ? (line.split(' ')[4] ?? []) : []))
  const places = new Set(lines('/proc/self/cgroup').flatMap((line) => upwards(line.split(':')[2] ?? '/')))
  const groups = mountPoints.flatMap((mountPoint) => [...places].flatMap((place) => listFolders(join(mountPoint, place))))
  return groups.filter((path) => /\/glovebox\./.test(path) && bearsName(path)).flatMap((path) => [path, ...listFolders(path)])
}

function upwards(path: string): string[] {
  return path === '/' || path === '' ? ['/'] : [path, ...upwards(dirname(path))]
}

function listFolders(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [join(folder, entry.name)] : []))
  } catch {
    return []
  }
}

function lines(path: string): string[] {
  return readFileSync(path, 'latin1').split('\n').filter(Boolean)
}

function listTree(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name)
      return entry.isDirectory() ? [path, ...listTree(path)] : [path]
    })
  } catch {
    return []
  }
}

function listDescriptors(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`)
      return target.startsWith('/proc/') && target.endsWith('/fd') ? [] : [`${fd} ${target}`]
    } catch {
      return []
    }
  })
}

interface Planted {
  readonly canaries: Canaries
  remove(): Promise<void>
}

async function plantCanaries(): Promise<Planted> {
  const file = plantFile()
  const tcp4 = await listen({ host: '127.0.0.1', port: 0 })
  const tcp6 = await listen({ host: '::1', port: 0 }).catch(() => undefined)
  // As long as an address can be: some runtimes pad shorter names with NULs, which makes them other names.
  const name = `gbx-canary-${randomBytes(48).toString('hex')}`
  const abstract = await listen({ path: `\0${name}` }).catch(() => undefined)
  const variable = { name: `GBX_CANARY_${randomBytes(4).toString('hex')}`, value: randomBytes(16).toString('hex') }
  process.env[variable.name] = variable.value
  const sleeper = plantProcess()
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
    },
    remove: async () => {
      closeSync(descriptor)
      Reflect.deleteProperty(process.env, variable.name)
      sleeper.child.kill('SIGKILL')
      for (const listening of [tcp4, tcp6, abstract]) listening?.server.close()
      rmSync(file.folder, { recursive: true })
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
