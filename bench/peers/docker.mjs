/**
 * Docker, by its API and by its CLI: a daemon of the benchmark's own, in a folder of its own, with an image made of the host's files. The daemon is told to end when
 * this process does, however that happens.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { dockerCliName, expectOne, pssBytes, python, versionOf } from '../../dist/bench/index.js'

const execute = promisify(execFile)
const image = 'glovebox-bench'
const cgroupParent = `/glovebox-bench-${process.pid}`
const startPatienceMs = 60_000
const endPatienceMs = 20_000
const limits = { NetworkMode: 'none', ReadonlyRootfs: true, Memory: 512 * 2 ** 20, NanoCpus: 500_000_000, PidsLimit: 64 }
const limitFlags = ['--network=none', '--read-only', '--memory=512m', '--cpus=0.5', '--pids-limit=64']

export async function openDocker({ folder, root, packages, signal }) {
  const own = join(folder, 'docker')
  mkdirSync(own, { recursive: true })
  const socket = join(own, 'socket')
  const daemon = startDaemon({ own, socket, packages, settings: withGvisor(own, packages) })
  const dispose = () => endDaemon(daemon, own)
  try {
    const call = (method, path, body) => callApi({ socket, method, path, body })
    await untilReady({ call, daemon, own, signal })
    const env = { ...packages.env, DOCKER_HOST: `unix://${socket}`, DOCKER_CONFIG: join(own, 'config') }
    const cli = packages.path('docker')
    await execute('/bin/sh', ['-c', 'tar -C "$0" -c . | "$1" import - "$2"', root, cli, image], { env, signal })
    const version = versionOf(cli, ['--version'])
    return {
      peers: [throughApi({ call, version }), throughCli({ cli, env, version })],
      host: env.DOCKER_HOST,
      execTrue: () => openExec(call),
      [Symbol.asyncDispose]: dispose,
    }
  } catch (error) {
    await dispose()
    throw error
  }
}

/** A file that tells the daemon of gVisor, as `runsc install` would; on a platform that works in any machine. */
function withGvisor(own, packages) {
  const file = join(own, 'daemon.json')
  writeFileSync(file, JSON.stringify({ runtimes: { runsc: { path: packages.path('runsc'), runtimeArgs: ['--platform=ptrace', '--network=none'] } } }))
  return file
}

function startDaemon({ own, socket, packages, settings }) {
  const places = ['--data-root', join(own, 'data'), '--exec-root', join(own, 'exec'), '--pidfile', join(own, 'pid'), '-H', `unix://${socket}`]
  const quiet = ['--cgroup-parent', cgroupParent, '--iptables=false', '--ip6tables=false', '--bridge=none', '--log-level=warn']
  const log = openSync(join(own, 'log'), 'a')
  // Of its own session, so that a Ctrl-C is ours to answer.
  const argv = ['--pdeathsig', 'TERM', packages.path('dockerd'), '--config-file', settings, ...places, ...quiet]
  const child = spawn('setpriv', argv, { env: packages.env, stdio: ['ignore', log, log], detached: true })
  closeSync(log)
  child.on('error', () => undefined)
  return child
}

async function untilReady({ call, daemon, own, signal }) {
  const until = performance.now() + startPatienceMs
  while (performance.now() < until) {
    if (daemon.exitCode !== null || daemon.pid === undefined) throw new Error(`dockerd ended: ${lastWords(own)}`)
    if (
      await call('GET', '/_ping').then(
        () => true,
        () => false,
      )
    )
      return
    await sleep(100, undefined, { signal })
  }
  throw new Error(`dockerd does not answer: ${lastWords(own)}`)
}

function lastWords(own) {
  return readFileSync(join(own, 'log'), 'utf8').trim().split('\n').slice(-2).join(' ')
}

async function endDaemon(daemon, own) {
  if (daemon.pid !== undefined && daemon.exitCode === null && daemon.signalCode === null) {
    const ended = once(daemon, 'exit')
    daemon.kill('SIGTERM')
    if ((await Promise.race([ended, sleep(endPatienceMs, 'late', { ref: false })])) === 'late') {
      // Its session holds containerd and the shims too.
      process.kill(-daemon.pid, 'SIGKILL')
      await ended
    }
  }
  for (const mounted of mountsBelow(own)) await execute('umount', ['-l', mounted]).catch(() => undefined)
  removeCgroups()
  rmSync(own, { recursive: true, force: true, maxRetries: 5 })
}

/** Docker removes those of its containers, and leaves the one above them in every hierarchy. */
function removeCgroups() {
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
    if (!/ - cgroup2? /.test(line)) continue
    try {
      rmdirSync(join(line.split(' ')[4], cgroupParent))
    } catch {
      // Never made in this hierarchy.
    }
  }
}

/** The deepest first. */
function mountsBelow(folder) {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .flatMap((line) => line.split(' ')[4] ?? [])
    .filter((path) => path.startsWith(`${folder}/`))
    .sort((one, other) => other.length - one.length)
}

function throughApi({ call, version }) {
  const create = async (command) =>
    (await call('POST', '/containers/create', { Image: image, Cmd: command, HostConfig: { ...limits, LogConfig: { Type: 'json-file' } } })).Id
  const remove = (id) => call('DELETE', `/containers/${id}?force=1`)
  return {
    name: 'docker, by its API',
    version,
    async run() {
      const id = await create(python)
      try {
        await call('POST', `/containers/${id}/start`)
        await call('POST', `/containers/${id}/wait`)
        // Each piece of a log has eight bytes before it that say how long it is and on which stream.
        expectOne((await call('GET', `/containers/${id}/logs?stdout=1`, undefined)).subarray(8).toString())
      } finally {
        await remove(id)
      }
    },
    async idleBytes(wanted) {
      const ids = []
      try {
        while (ids.length < wanted) {
          const id = await create(['/usr/bin/sleep', '600'])
          ids.push(id)
          await call('POST', `/containers/${id}/start`)
        }
        const firsts = await Promise.all(ids.map(async (id) => (await call('GET', `/containers/${id}/json`)).State.Pid))
        // Beside each container stands a shim, its parent; the daemons are not counted.
        return pssBytes([...firsts, ...new Set(firsts.map(parentOf))])
      } finally {
        await Promise.all(ids.map(remove))
      }
    },
  }
}

/** A container that runs, and `true` in it by the API: an exec is made, started, and asked how it ended. */
async function openExec(call) {
  const { Id } = await call('POST', '/containers/create', {
    Image: image,
    Cmd: ['/usr/bin/sleep', '600'],
    HostConfig: { ...limits, LogConfig: { Type: 'none' } },
  })
  await call('POST', `/containers/${Id}/start`)
  return {
    name: 'docker, by its API: exec of true in a running container',
    async run() {
      const made = await call('POST', `/containers/${Id}/exec`, { Cmd: ['/usr/bin/true'], AttachStdout: true, AttachStderr: true })
      await call('POST', `/exec/${made.Id}/start`, { Detach: false, Tty: false })
      const { ExitCode } = await call('GET', `/exec/${made.Id}/json`)
      if (ExitCode !== 0) throw new Error(`the exec ended with ${ExitCode}`)
    },
    [Symbol.asyncDispose]: () => call('DELETE', `/containers/${Id}?force=1`),
  }
}

function parentOf(pid) {
  return Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

function throughCli({ cli, env, version }) {
  return {
    name: dockerCliName,
    version,
    run: async () => expectOne((await execute(cli, ['run', '--rm', ...limitFlags, image, ...python], { env, timeout: 60_000 })).stdout),
  }
}

/** The answer as it is: an object when it is JSON, bytes when it is not. */
async function callApi({ socket, method, path, body }) {
  const text = body === undefined ? '' : JSON.stringify(body)
  const headers = { Host: 'docker', 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }
  const sent = request({ socketPath: socket, path: `/v1.41${path}`, method, headers, timeout: 60_000 })
  sent.end(text)
  const [response] = await once(sent, 'response')
  const chunks = []
  for await (const chunk of response) chunks.push(chunk)
  const bytes = Buffer.concat(chunks)
  if (response.statusCode >= 400) throw new Error(`docker answers ${response.statusCode} to ${method} ${path}: ${bytes}`)
  return response.headers['content-type']?.includes('json') ? JSON.parse(bytes) : bytes
}
