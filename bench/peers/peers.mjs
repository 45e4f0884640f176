import { existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import os from 'node:os'
import { join } from 'node:path'
import { dockerCliName, srtCliName } from '../../dist/bench/index.js'
import { openDocker } from './docker.mjs'
import { openOci } from './oci.mjs'
import { unpackPackages } from './packages.mjs'
import { makePythonRoot } from './python-root.mjs'
import { openSandboxRuntime } from './sandbox-runtime.mjs'

const containers = ['runc', 'runsc', 'containerd', 'docker.io', 'tini', 'libdevmapper1.02.1']
const runtimeTools = ['socat', 'ripgrep', 'libwrap0']
const ociNames = { runc: 'runc run, no filter', runsc: 'runsc run (gVisor, ptrace)' }

/** Makes every peer ready that can be had here; what cannot be is told with its reason. Disposing of it leaves nothing of them. */
export async function openPeers({ signal, say, asFound }) {
  const folder = realpathSync(mkdtempSync(join(os.tmpdir(), 'glovebox-bench-peers-')))
  const opened = []
  const found = []
  const missing = []
  /** Several rows may come of one peer, or go with it. */
  const attempt = async (names, open) => {
    say(names[0])
    try {
      const peer = await open()
      opened.push(peer)
      found.push(...(peer.peers ?? [peer]))
    } catch (error) {
      signal.throwIfAborted()
      missing.push(...names.map((name) => ({ name, why: error.message.trim().split('\n').slice(-2).join(' ').slice(0, 300) })))
    }
  }
  const dispose = async () => {
    for (const each of opened.reverse()) await each[Symbol.asyncDispose]().catch((error) => say(`left behind: ${error.message}`))
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    await openContainers({ folder, signal, attempt })
    await attempt(['sandbox-runtime (library, initialised)', srtCliName], async () => {
      const packages = await unpackPackages(join(folder, 'tools'), runtimeTools, { signal })
      return openSandboxRuntime({ folder, packages, signal, asFound })
    })
  } catch (error) {
    await dispose()
    throw error
  }
  return { found, missing, [Symbol.asyncDispose]: dispose }
}

/** All of them need root, the same packages and the same root filesystem. */
async function openContainers({ folder, signal, attempt }) {
  let ground
  const prepare = () => (ground ??= prepareContainers({ folder, signal }))
  for (const runtime of ['runc', 'runsc']) {
    // Never KVM, which hangs on machines that are virtual themselves.
    const flags = runtime === 'runsc' ? ['--platform=ptrace', '--network=none'] : []
    await attempt([ociNames[runtime]], async () => openOci({ ...(await prepare()), folder, runtime, flags, name: ociNames[runtime] }))
  }
  await attempt(['docker, by its API', dockerCliName], async () => openDocker({ ...(await prepare()), folder, signal }))
}

/** Programs and a root filesystem for containers, in this folder. */
export async function prepareContainers({ folder, signal }) {
  if (process.getuid() !== 0) throw new Error('needs root')
  if (!existsSync('/usr/bin/apt-get')) throw new Error('is taken from Debian’s packages, and there is no apt-get')
  const [packages, root] = await Promise.all([unpackPackages(join(folder, 'containers'), containers, { signal }), makePythonRoot(folder, { signal })])
  return { packages, root }
}
