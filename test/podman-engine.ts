/** Podman's service for the tests, unpacked from Debian's packages and with all that it keeps in a folder of its own. It ends with this process. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
// @ts-expect-error a program of the benchmark's, without types
import { unpackPackages } from '../bench/peers/packages.mjs'
import { createEngineClient, type EngineClient } from '../src/sys/docker/client.js'
import { cachePlace } from '../src/sys/places.js'

export interface PodmanEngine extends AsyncDisposable {
  readonly address: { readonly kind: 'socket'; readonly path: string }
  readonly client: EngineClient
}

const packages = ['podman', 'conmon', 'runc', 'libgpgme11', 'libassuan0', 'libsubid4', 'libyajl2', 'libdevmapper1.02.1']
const patienceMs = 60_000

/** Why there can be none here; undefined when there can. */
export function noPodmanEngine(): string | undefined {
  if (process.getuid?.() !== 0) return 'what holds around containers is read by root alone'
  return existsSync('/usr/bin/apt-get') ? undefined : "Podman is taken from Debian's packages, and there is no apt-get"
}

export async function startPodmanEngine(): Promise<PodmanEngine> {
  const root = await unpacked()
  const folder = mkdtempSync('/tmp/gbx-podman-')
  const address = { kind: 'socket', path: join(folder, 'socket') } as const
  const client = createEngineClient(address)
  const service = startService(root, folder)
  const dispose = () => end(service, folder)
  try {
    const until = performance.now() + patienceMs
    while ((await client.version().catch(() => undefined)) === undefined) {
      const words = (): string => readFileSync(join(folder, 'log'), 'utf8').trim().split('\n').slice(-2).join(' ')
      if (service.exitCode !== null || performance.now() > until) throw new Error(`podman does not answer: ${words()}`)
      await sleep(50)
    }
    return { address, client, [Symbol.asyncDispose]: dispose }
  } catch (error) {
    await dispose()
    throw error
  }
}

/** Kept from one run of the tests to the next. */
async function unpacked(): Promise<string> {
  const place = join(cachePlace(), 'test-podman')
  if (!existsSync(place)) {
    const draft = mkdtempSync(`${place}.`)
    await unpackPackages(draft, packages, { signal: AbortSignal.timeout(180_000) })
    renameSync(draft, place)
  }
  return join(place, 'packages')
}

function startService(root: string, folder: string): ChildProcess {
  const own = join(folder, 'home/.config/containers')
  mkdirSync(own, { recursive: true })
  mkdirSync(join(folder, 'tmp'))
  writeFileSync(join(own, 'policy.json'), '{"default":[{"type":"insecureAcceptAnything"}]}')
  const runc = ['usr/sbin/runc', 'usr/bin/runc'].map((path) => join(root, path)).find((path) => existsSync(path))
  const engine = [
    'cgroup_manager = "cgroupfs"',
    'events_logger = "none"',
    `conmon_path = ["${root}/usr/bin/conmon"]`,
    'runtime = "runc"',
    `tmp_dir = "${folder}/tmp"`,
  ]
  const places = [`static_dir = "${folder}/static"`, `volume_path = "${folder}/volumes"`]
  writeFileSync(join(folder, 'containers.conf'), ['[engine]', ...engine, ...places, '[engine.runtimes]', `runc = ["${runc}"]`, ''].join('\n'))
  writeFileSync(join(folder, 'storage.conf'), `[storage]\ndriver = "overlay"\ngraphroot = "${folder}/graph"\nrunroot = "${folder}/run"\n`)
  const libraries = ['usr/lib', 'lib'].map((name) => join(root, name, 'x86_64-linux-gnu'))
  const env = {
    ...process.env,
    HOME: join(folder, 'home'),
    LD_LIBRARY_PATH: libraries.join(':'),
    CONTAINERS_CONF: join(folder, 'containers.conf'),
    CONTAINERS_STORAGE_CONF: join(folder, 'storage.conf'),
    CONTAINERS_REGISTRIES_CONF: '/dev/null',
  }
  const log = openSync(join(folder, 'log'), 'a')
  const argv = ['--pdeathsig', 'TERM', join(root, 'usr/bin/podman'), 'system', 'service', '--time=0', `unix://${folder}/socket`]
  const service = spawn('setpriv', argv, { env, stdio: ['ignore', log, log], detached: true })
  closeSync(log)
  service.unref()
  return service
}

async function end(service: ChildProcess, folder: string): Promise<void> {
  if (service.exitCode === null && service.signalCode === null) {
    const ended = once(service, 'exit')
    service.kill('SIGTERM')
    await ended
  }
  const points = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .flatMap((line) => line.split(' ')[4] ?? [])
  const below = points.filter((path) => path.startsWith(`${folder}/`)).sort((one, other) => other.length - one.length)
  for (const mounted of below) execFileSync('umount', ['-l', mounted], { stdio: 'ignore' })
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
