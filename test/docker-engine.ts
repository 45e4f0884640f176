/**
 * A Docker daemon of the tests' own, in a folder of its own: its programs are those of this machine or, unpacked and not installed, of Debian's packages. It ends with
 * this process, and leaves nothing.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
// @ts-expect-error a program of the benchmark's, without types
import { unpackPackages } from '../bench/peers/packages.mjs'
import { programPath } from '../src/cell/facts.js'
import type { EngineAddress } from '../src/sys/docker/address.js'
import { createEngineClient, type EngineClient } from '../src/sys/docker/client.js'
import { cachePlace } from '../src/sys/places.js'

export interface DockerEngine extends AsyncDisposable {
  readonly address: EngineAddress & { readonly kind: 'socket' }
  readonly client: EngineClient
  /** All that it writes is below it. */
  readonly folder: string
  readonly daemon: ChildProcess
}

export interface DockerEngineOptions {
  /** Further arguments of dockerd. */
  readonly arguments?: (folder: string) => readonly string[]
  /** In mount and pid namespaces of its own, in which none of these folders shows what it has here: an engine as good as on another machine. */
  readonly without?: readonly string[]
}

const packages = ['docker.io', 'containerd', 'runc', 'tini', 'libdevmapper1.02.1']
const needed = ['dockerd', 'containerd', 'containerd-shim-runc-v2', 'runc']
const startPatienceMs = 60_000
const endPatienceMs = 20_000

/** Why there can be none here whose runtime is gVisor; undefined when there can. */
export function noGvisorEngine(): string | undefined {
  return noDockerEngine() ?? (programPath('runsc') === undefined ? 'runsc is not installed' : undefined)
}

/** Further arguments of a dockerd that has gVisor, as `runsc install` would tell it; on a platform that works in any machine. */
export function withGvisor(folder: string): string[] {
  const file = join(folder, 'daemon.json')
  writeFileSync(file, JSON.stringify({ runtimes: { runsc: { path: programPath('runsc'), runtimeArgs: ['--platform=ptrace', '--network=none'] } } }))
  return ['--config-file', file]
}

interface Programs {
  readonly dockerd: string
  readonly env: NodeJS.ProcessEnv
}

/** Why there can be none here; undefined when there can. */
export function noDockerEngine(): string | undefined {
  if (process.getuid?.() !== 0) return 'a Docker daemon can only be started by root'
  if (findInPath() || existsSync('/usr/bin/apt-get')) return undefined
  return 'dockerd is not installed, and there is no apt-get to take it from'
}

/** Of the driver by this name; undefined where it needs none. */
export function noEngineFor(driver: string): string | undefined {
  return driver === 'docker' ? noDockerEngine() : driver === 'docker:runsc' ? noGvisorEngine() : undefined
}

export async function startEngineFor(driver: string): Promise<DockerEngine | undefined> {
  if (driver === 'docker') return startDockerEngine()
  return driver === 'docker:runsc' ? startDockerEngine({ arguments: withGvisor }) : undefined
}

export async function startDockerEngine(options: DockerEngineOptions = {}): Promise<DockerEngine> {
  const programs = findInPath() ?? (await unpacked())
  const folder = mkdtempSync('/tmp/gbx-docker-')
  const socket = join(folder, 'socket')
  const cgroupParent = `/gbx-docker-${process.pid}-${folder.slice(-6)}`
  const daemon = startDaemon({ programs, folder, socket, cgroupParent, more: options.arguments?.(folder) ?? [], without: options.without })
  const address = { kind: 'socket', path: socket } as const
  const dispose = () => endDaemon({ daemon, folder, cgroupParent })
  try {
    await untilReady(daemon, folder, socket)
    return { address, client: createEngineClient(address), folder, daemon, [Symbol.asyncDispose]: dispose }
  } catch (error) {
    await dispose()
    throw error
  }
}

function findInPath(): Programs | undefined {
  const folders = (process.env.PATH ?? '').split(':')
  const find = (name: string): string | undefined => folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
  const dockerd = find('dockerd')
  return dockerd !== undefined && needed.every((name) => find(name) !== undefined) ? { dockerd, env: process.env } : undefined
}

/** Kept from one run of the tests to the next; whoever comes second finds it there. */
async function unpacked(): Promise<Programs> {
  const place = join(cachePlace(), 'test-docker')
  if (!existsSync(place)) {
    const draft = mkdtempSync(`${place}.`)
    try {
      await unpackPackages(draft, packages, { signal: AbortSignal.timeout(180_000) })
      renameSync(draft, place)
    } catch (error) {
      rmSync(draft, { recursive: true, force: true })
      if (!existsSync(place)) throw error
    }
  }
  const root = join(place, 'packages')
  const binaries = ['usr/bin', 'usr/sbin', 'bin', 'sbin'].map((name) => join(root, name))
  const libraries = ['usr/lib', 'lib'].map((name) => join(root, name, 'x86_64-linux-gnu'))
  const env = { ...process.env, PATH: [...binaries, process.env.PATH].join(':'), LD_LIBRARY_PATH: libraries.join(':') }
  return { dockerd: join(root, 'usr/sbin/dockerd'), env }
}

interface Start {
  readonly programs: Programs
  readonly folder: string
  readonly socket: string
  readonly cgroupParent: string
  readonly more: readonly string[]
  readonly without: readonly string[] | undefined
}

function startDaemon({ programs, folder, socket, cgroupParent, more, without }: Start): ChildProcess {
  const places = ['--data-root', join(folder, 'data'), '--exec-root', join(folder, 'exec'), '--pidfile', join(folder, 'pid'), '-H', `unix://${socket}`]
  const quiet = ['--cgroup-parent', cgroupParent, '--iptables=false', '--ip6tables=false', '--bridge=none', '--log-level=warn']
  const log = openSync(join(folder, 'log'), 'a')
  const argv = ['--pdeathsig', 'TERM', ...(without ? elsewhere(without) : []), programs.dockerd, ...places, ...quiet, ...more]
  const daemon = spawn('setpriv', argv, { env: programs.env, stdio: ['ignore', log, log], detached: true })
  closeSync(log)
  daemon.unref()
  return daemon
}

/** Its end is the end of all that it started: the kernel sees to that, in a pid namespace. */
function elsewhere(without: readonly string[]): string[] {
  const covered = 'while [ "$1" != -- ]; do mount -t tmpfs none "$1" || exit; shift; done; shift; exec "$@"'
  return ['unshare', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child', 'sh', '-c', covered, 'sh', ...without, '--']
}

async function untilReady(daemon: ChildProcess, folder: string, socket: string): Promise<void> {
  const until = performance.now() + startPatienceMs
  while (performance.now() < until) {
    if (daemon.exitCode !== null || daemon.pid === undefined) throw new Error(`dockerd ended: ${lastWords(folder)}`)
    const version = await createEngineClient({ kind: 'socket', path: socket })
      .version()
      .catch(() => undefined)
    if (version !== undefined) return
    await sleep(50)
  }
  throw new Error(`dockerd does not answer: ${lastWords(folder)}`)
}

function lastWords(folder: string): string {
  return readFileSync(join(folder, 'log'), 'utf8').trim().split('\n').slice(-2).join(' ')
}

interface End {
  readonly daemon: ChildProcess
  readonly folder: string
  readonly cgroupParent: string
}

async function endDaemon({ daemon, folder, cgroupParent }: End): Promise<void> {
  if (daemon.pid !== undefined && daemon.exitCode === null && daemon.signalCode === null) {
    const ended = once(daemon, 'exit')
    daemon.kill('SIGTERM')
    if ((await Promise.race([ended, sleep(endPatienceMs, 'late', { ref: false })])) === 'late') {
      // Its session holds containerd and the shims too.
      process.kill(-daemon.pid, 'SIGKILL')
      await ended
    }
  }
  for (const mounted of mountsBelow(folder)) execFileSync('umount', ['-l', mounted], { stdio: 'ignore' })
  removeCgroups(cgroupParent)
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}

/** The deepest first. */
function mountsBelow(folder: string): string[] {
  const points = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .flatMap((line) => line.split(' ')[4] ?? [])
  return points.filter((path) => path.startsWith(`${folder}/`)).sort((one, other) => other.length - one.length)
}

/** Docker removes those of its containers, and leaves the one above them in every hierarchy. */
function removeCgroups(parent: string): void {
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
    if (!/ - cgroup2? /.test(line)) continue
    try {
      rmdirSync(join(line.split(' ')[4] as string, parent))
    } catch {
      // Never made in this hierarchy.
    }
  }
}
