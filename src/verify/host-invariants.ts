import { createHash } from 'node:crypto'
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { InvariantKind } from '../conformance/index.js'
import { type HostViewOptions, lines, listCgroups, listMounts, listProcesses, takeFiles } from './host-lists.js'

/*
 * What must be the same of the machine before and after everything that was tried in cells. A machine lives: what others do all the time (counters
 * in /proc/sys, their processes and sockets) is left out, or counted only where it is of this process's descent.
 */

/** Whole: names, modes, owners and content. */
const hashed = ['/etc', '/usr/local', '/boot', '/var/spool/cron', '/opt', '/srv']
/** Names, modes, owners, sizes and times: too much to read. */
const listed = ['/', '/root', '/home', '/usr', '/usr/bin', '/usr/sbin', '/usr/lib', '/bin', '/sbin', '/lib', '/var', '/var/lib', '/lib/modules', '/dev']

const mostEntries = 20_000
const mostBytes = 4 * 2 ** 20

/** Counters and choices of the kernel's, which change by themselves. */
const restless =
  /^\/proc\/sys\/(fs\/(dentry-state|file-nr|inode-nr|inode-state|aio-nr|quota\/|binfmt_misc\/status)|kernel\/(random\/|ns_last_pid|pty\/nr|cad_pid|threads-max)|net\/netfilter\/nf_conntrack_(count|.*bucket)|vm\/(stat_refresh|compact_memory|drop_caches|min_free_kbytes|lowmem_reserve_ratio))/

/** Forks the launchers of this process, and ends with it. */
const launchServer = /\/launcher --serve /

export async function recordInvariants(options: HostViewOptions): Promise<Readonly<Record<InvariantKind, readonly string[]>>> {
  // Between two parts of it other work of this process may go on.
  const rest = async <T>(act: () => T): Promise<T> => {
    await new Promise((resolve) => setImmediate(resolve))
    return act()
  }
  return {
    files: await rest(() => [...hashed.flatMap((folder) => hashTree(folder)), ...listed.flatMap((folder) => listFolder(folder))]),
    settings: await rest(() => settingsBelow('/proc/sys')),
    mounts: await rest(() => listMounts(options)),
    cgroups: await rest(() => listCgroups()),
    processes: await rest(() =>
      listProcesses().flatMap(({ ofEngine, pid, command }) => (ofEngine && !launchServer.test(command) ? [`${pid} ${command}`] : [])),
    ),
    listeners: await rest(() => ownListeners()),
    'shared-memory': await rest(() => ['shm', 'msg', 'sem'].flatMap((kind) => segmentsOf(kind))),
    'network-namespaces': namesIn('/run/netns'),
    interfaces: namesIn('/sys/class/net'),
    'loop-devices': namesIn('/sys/block').flatMap((name) => (name.startsWith('loop') ? [`${name} ${text(`/sys/block/${name}/loop/backing_file`)}`] : [])),
    modules: text('/proc/modules')
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(' ')[0] ?? ''),
    taint: [text('/proc/sys/kernel/tainted')],
    'temporary-files': takeFiles(options),
  }
}

function hashTree(folder: string, found: string[] = []): string[] {
  for (const name of namesIn(folder)) {
    if (found.length >= mostEntries) return found
    const path = join(folder, name)
    const state = lstatSync(path, { throwIfNoEntry: false })
    if (!state) continue
    if (state.isDirectory()) {
      found.push(`${path}/ ${state.mode.toString(8)} ${state.uid}:${state.gid}`)
      hashTree(path, found)
    } else found.push(`${path} ${state.mode.toString(8)} ${state.uid}:${state.gid} ${state.isSymbolicLink() ? link(path) : contentOf(path)}`)
  }
  return found
}

/** Only of files: what else there is may wait for ever. */
function contentOf(path: string): string {
  try {
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const state = fstatSync(descriptor)
      if (!state.isFile() || state.size > mostBytes) return `${state.size} ${state.mtimeMs}`
      return createHash('sha256').update(readFileSync(descriptor)).digest('hex')
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unreadable'
  }
}

function listFolder(folder: string): string[] {
  return namesIn(folder).flatMap((name) => {
    const state = lstatSync(join(folder, name), { throwIfNoEntry: false })
    if (!state) return []
    const size = state.isFile() ? ` ${state.size} ${state.mtimeMs}` : ''
    return [`${join(folder, name)} ${state.mode.toString(8)} ${state.uid}:${state.gid}${size}`]
  })
}

function settingsBelow(folder: string): string[] {
  return namesIn(folder).flatMap((name) => {
    const path = join(folder, name)
    const state = lstatSync(path, { throwIfNoEntry: false })
    if (!state || restless.test(path)) return []
    if (state.isDirectory()) return settingsBelow(path)
    // What is not readable for its owner is there to be written to.
    return (state.mode & 0o400) === 0 ? [] : [`${path} ${text(path)}`]
  })
}

/** Who listens, and is this process or descends of it. */
function ownListeners(): string[] {
  const ours = new Set([process.pid, ...listProcesses().flatMap(({ ofEngine, pid }) => (ofEngine ? [pid] : []))])
  const sockets = new Set(
    [...ours].flatMap((pid) => namesIn(`/proc/${pid}/fd`).map((fd) => /^socket:\[(\d+)\]$/.exec(link(`/proc/${pid}/fd/${fd}`))?.[1] ?? '')),
  )
  return ['tcp', 'tcp6'].flatMap((kind) =>
    lines(`/proc/net/${kind}`).flatMap((line) => {
      const [, address = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/)
      return state === '0A' && sockets.has(inode) ? [`${kind} ${address}`] : []
    }),
  )
}

/** By key and owner. */
function segmentsOf(kind: string): string[] {
  return text(`/proc/sysvipc/${kind}`)
    .split('\n')
    .slice(1)
    .filter(Boolean)
    .map((line) => `${kind} ${line.trim().split(/\s+/).slice(0, 3).join(' ')}`)
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}

function link(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

function text(path: string): string {
  try {
    return readFileSync(path, 'latin1').trim()
  } catch {
    return ''
  }
}
