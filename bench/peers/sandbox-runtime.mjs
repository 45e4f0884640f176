/** @anthropic-ai/sandbox-runtime from npm, in a folder of the benchmark's own: the library once it is initialised, and its CLI. */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expectOne, python, srtCliName } from '../../dist/bench/index.js'

const execute = promisify(execFile)
const command = `${python[0]} -c 'print(1)'`
const config = { network: { allowedDomains: [], deniedDomains: [] }, filesystem: { denyRead: [], allowWrite: ['.'], denyWrite: [] } }

/** @param {{ asFound: NodeJS.ProcessEnv }} options `asFound` is the environment that npm is set up in, which nobody who is measured has. */
export async function openSandboxRuntime({ folder, packages, signal, asFound }) {
  const own = join(folder, 'sandbox-runtime')
  const cwd = join(own, 'work')
  mkdirSync(cwd, { recursive: true })
  writeFileSync(join(own, 'package.json'), '{"private":true}')
  await execute('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', own, '@anthropic-ai/sandbox-runtime'], {
    cwd: own,
    signal,
    env: asFound,
  })
  const installed = join(own, 'node_modules/@anthropic-ai/sandbox-runtime')
  const { version } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
  // A home of its own, so that nobody's settings are read.
  const env = { ...packages.env, HOME: own }
  const { SandboxManager } = await import(pathToFileURL(join(installed, 'dist/index.js')).href)
  await withEnvironment(env, () => SandboxManager.initialize(config))
  return {
    peers: [throughLibrary({ SandboxManager, env, cwd, version }), throughCli({ entry: join(installed, 'dist/cli.js'), env, cwd, version })],
    [Symbol.asyncDispose]: () => SandboxManager.reset(),
  }
}

/** It looks for its programs on the PATH of the process that it is loaded into. */
async function withEnvironment(env, act) {
  const { PATH, LD_LIBRARY_PATH } = process.env
  Object.assign(process.env, { PATH: env.PATH, LD_LIBRARY_PATH: env.LD_LIBRARY_PATH })
  try {
    return await act()
  } finally {
    process.env.PATH = PATH
    if (LD_LIBRARY_PATH === undefined) delete process.env.LD_LIBRARY_PATH
    else process.env.LD_LIBRARY_PATH = LD_LIBRARY_PATH
  }
}

function throughLibrary({ SandboxManager, env, cwd, version }) {
  return {
    name: 'sandbox-runtime (library, initialised)',
    version,
    async run() {
      const wrapped = await withEnvironment(env, () => SandboxManager.wrapWithSandbox(command))
      expectOne((await execute('/bin/bash', ['-c', wrapped], { env, cwd, timeout: 60_000 })).stdout)
    },
  }
}

function throughCli({ entry, env, cwd, version }) {
  return {
    name: srtCliName,
    version,
    run: async () => expectOne((await execute(process.execPath, [entry, '-c', command], { env, cwd, timeout: 60_000 })).stdout),
  }
}
