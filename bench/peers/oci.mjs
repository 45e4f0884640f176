/** runc and runsc, each with a bundle of its own: the same root, read-only, no network, the limits that are Glovebox's defaults. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expectOne, pssBytes, python, versionOf } from '../../dist/bench/index.js'

const execute = promisify(execFile)
const patienceMs = 60_000
const limits = { memory: { limit: 512 * 2 ** 20 }, cpu: { quota: 50_000, period: 100_000 }, pids: { limit: 64 } }

export async function openOci(options) {
  const { folder, runtime, flags, root, packages, name } = options
  const program = packages.path(runtime)
  if (program === undefined) throw new Error(`${runtime} is not in its package`)
  const own = join(folder, runtime)
  const state = join(own, 'state')
  const bundles = {
    hello: await makeBundle(own, { program, root, args: python }),
    idle: await makeBundle(own, { program, root, args: ['/usr/bin/sleep', '600'] }),
  }
  let count = 0
  const call = (...args) => execute(program, ['--root', state, ...flags, ...args], { timeout: patienceMs, killSignal: 'SIGKILL' })
  // Without our pipes, which a container that stays would hold open.
  const start = async (...args) => {
    const child = spawn(program, ['--root', state, ...flags, ...args], { stdio: 'ignore', timeout: patienceMs, killSignal: 'SIGKILL' })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`${runtime} ${args[0]} ended with ${code}`)
  }
  const nextId = () => `glovebox-bench-${process.pid}-${count++}`
  return {
    name,
    version: versionOf(program, ['--version']),
    run: async () => expectOne((await call('run', '--bundle', bundles.hello, nextId())).stdout),
    idleBytes: (wanted) => idleBytes({ wanted, nextId, call, start, bundle: bundles.idle }),
    async [Symbol.asyncDispose]() {
      // What a run that was cut short left of its container.
      for (const id of containersIn(state)) await call('delete', '--force', id).catch(() => undefined)
      rmSync(own, { recursive: true, force: true })
    },
  }
}

async function makeBundle(own, { program, root, args }) {
  const bundle = join(own, args[0] === python[0] ? 'hello' : 'idle')
  mkdirSync(bundle, { recursive: true })
  await execute(program, ['spec', '--bundle', bundle])
  const file = join(bundle, 'config.json')
  const config = JSON.parse(readFileSync(file, 'utf8'))
  config.process = { ...config.process, terminal: false, args }
  config.root = { path: root, readonly: true }
  config.linux = { ...config.linux, resources: { ...config.linux?.resources, ...limits } }
  writeFileSync(file, JSON.stringify(config))
  return bundle
}

function containersIn(state) {
  try {
    return readdirSync(state).map((name) => name.replace(/_sandbox.*|\.state$|\.lock$/, ''))
  } catch {
    return []
  }
}

async function idleBytes({ wanted, nextId, call, start, bundle }) {
  const ids = []
  try {
    while (ids.length < wanted) {
      const id = nextId()
      ids.push(id)
      await start('run', '--detach', '--bundle', bundle, id)
    }
    return pssBytes(await pidsOf(ids, call))
  } finally {
    for (const id of ids) await call('delete', '--force', id).catch(() => undefined)
  }
}

/** The first process of each, and whatever the runtime keeps running for it, which bears its id. */
async function pidsOf(ids, call) {
  const first = await Promise.all(ids.map(async (id) => JSON.parse((await call('state', id)).stdout).pid))
  const keepers = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && ids.some((id) => commandOf(name).includes(id)))
  return [...new Set([...first, ...keepers.map(Number)])]
}

function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    return ''
  }
}
