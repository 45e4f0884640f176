import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { descendantsOf } from '../../src/bench/host-processes.js'
import type { TenantInput } from '../../src/contract/tenants.js'
import { localActor, openLedger } from '../../src/ledger.js'
import { statePlace } from '../../src/sys/places.js'
import { processesWith, startCli } from '../cli/cli.js'
import { type Answer, ask, type Asking } from './own-server.js'

/** A folder with what servers leave to each other: keys, the trail, a socket; and where each puts what is temporary. */
export async function serverFolder(tenants: readonly TenantInput[] = []) {
  const folder = mkdtempSync(join(tmpdir(), 'gbx-served-'))
  const [state, temporary] = [join(folder, 'state'), join(folder, 'tmp')]
  for (const each of [state, temporary]) mkdirSync(each, { mode: 0o700 })
  await using ledger = await openLedger({ folder: state })
  for (const tenant of tenants) await ledger.tenants.create(tenant, localActor)
  const keyOf = async (tenant: string): Promise<string> => (await ledger.keys.create({ tenant, scopes: ['read', 'run', 'admin'] }, localActor)).secret
  const keys = Object.fromEntries(await Promise.all(['default', ...tenants.map(({ id }) => id)].map(async (id) => [id, await keyOf(id)] as const)))
  return {
    folder,
    state,
    temporary,
    socket: join(folder, 's.sock'),
    /** An admin of each tenant. */
    keys: keys as Readonly<Record<string, string>>,
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

export type ServerFolder = Awaited<ReturnType<typeof serverFolder>>

export interface StartedServer {
  readonly pid: number
  readonly child: ChildProcessWithoutNullStreams
  /** The end of what it wrote to stderr. */
  said(): string
  ask(path: string, asking?: Asking): Promise<Answer>
  /** Resolves when it is gone; nothing of it was told. */
  kill(): Promise<void>
  /** In order; its exit code. */
  stop(): Promise<number | null>
}

/** The real program in a process of its own, listening on the socket of the folder. */
export async function startServer(
  { folder, state, temporary, socket, keys }: ServerFolder,
  { flags = [], env: more = {} }: { readonly flags?: readonly string[]; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<StartedServer> {
  const env = { TMPDIR: temporary, GLOVEBOX_SNAPSHOT_DIR: join(folder, 'snapshots'), ...more }
  const child = startCli(['serve', '--socket', socket, '--state', state, '--grace', '2s', ...flags], env)
  const ended = once(child, 'exit') as Promise<[number | null]>
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (piece: Buffer) => {
      said = (said + piece.toString()).slice(-20_000)
      if (said.includes('listening at')) resolve()
    })
    void ended.then(([code]) => reject(new Error(`ended with ${code} before it listened: ${said}`)))
  })
  child.stdout.resume()
  const end = async (signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> => {
    child.kill(signal)
    return (await ended)[0]
  }
  return {
    pid: child.pid as number,
    child,
    said: () => said,
    ask: (path, asking = {}) => ask(socket, path, { key: keys.default, ...asking }),
    kill: async () => void (await end('SIGKILL')),
    stop: () => end('SIGTERM'),
  }
}

/** What of the machine bears the name of a process that owned cells: records of cells and of ids, cgroups, mounts, sockets. */
export function tracesOf(pid: number, { folder, socket }: Pick<ServerFolder, 'folder' | 'socket'>): string[] {
  const isItsOwn = (text: string): boolean => new RegExp(`(?<!\\d)${pid}\\.\\d+\\.\\d+\\.[0-9a-f]{32}`).test(text)
  const linesOf = (path: string): string[] => readFileSync(path, 'latin1').split('\n')
  return [
    ...treeOf(statePlace()).filter(isItsOwn),
    ...treeOf('/sys/fs/cgroup', { depth: 5 }).filter(isItsOwn),
    ...linesOf('/proc/self/mountinfo').filter((line) => isItsOwn(line) || line.includes(folder)),
    ...linesOf('/proc/net/unix').filter((line) => isItsOwn(line) || (line.includes(folder) && !line.endsWith(socket))),
  ]
}

/** Processes below one, and those that hold a word in their command line, wherever they hang now. */
export function processesOf(pid: number, marker: string): readonly number[] {
  return [...new Set([...descendantsOf(pid), ...processesWith(marker)])]
}

export function isGone(pid: number): boolean {
  try {
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return true
  }
}

/** Other engines come and go meanwhile. */
function treeOf(folder: string, { depth = 4 }: { readonly depth?: number } = {}): string[] {
  if (depth === 0) return []
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name)
      return entry.isDirectory() ? [path, ...treeOf(path, { depth: depth - 1 })] : [path]
    })
  } catch {
    return []
  }
}
